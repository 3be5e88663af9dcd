"""The training side: the soft label by definition and by simulation, its loss, the head's weights."""

from __future__ import annotations

import pytest
import torch

from dspark_ops.calibration import ConfidenceHead, confidence_loss, previous_tokens, soft_accept


def test_soft_label_is_the_overlap_of_the_distributions() -> None:
    g = torch.Generator().manual_seed(0)
    draft, target = (torch.randn(4, 3, 50, generator=g) * 2 for _ in range(2))
    label = soft_accept(draft, target)
    overlap = torch.minimum(draft.double().softmax(-1), target.double().softmax(-1)).sum(-1)
    assert label.dtype == torch.float32
    torch.testing.assert_close(label.double(), overlap, rtol=0, atol=1e-6)
    assert torch.equal(soft_accept(draft, draft), torch.ones(4, 3))
    apart = torch.tensor([[100.0, 0.0]]), torch.tensor([[0.0, 100.0]])
    assert soft_accept(*apart).tolist() == [0.0]


def test_soft_label_is_what_rejection_sampling_accepts() -> None:
    g = torch.Generator().manual_seed(1)
    draft, target = torch.randn(20, generator=g), torch.randn(20, generator=g)
    q, p = draft.softmax(0), target.softmax(0)
    tokens = torch.multinomial(q, 100_000, replacement=True, generator=g)
    kept = torch.rand(100_000, generator=g) < (p / q)[tokens]
    assert float(kept.double().mean()) == pytest.approx(float(soft_accept(draft, target)), abs=0.005)


def test_the_label_carries_no_gradient_and_checks_shapes() -> None:
    draft = torch.randn(2, 5, requires_grad=True)
    assert not soft_accept(draft, torch.randn(2, 5)).requires_grad
    with pytest.raises(ValueError, match=r"target: expected shape \[2, 5\], got \[2, 4\]"):
        soft_accept(draft, torch.randn(2, 4))


def test_loss_is_least_where_the_logit_says_the_label() -> None:
    label = torch.tensor([[0.2, 0.9], [0.5, 0.0]])
    best = label.clamp(1e-4, 1 - 1e-4).logit().requires_grad_()
    confidence_loss(best, label).backward()
    assert best.grad is not None and float(best.grad.abs().max()) < 1e-4
    assert confidence_loss(best + 0.5, label) > confidence_loss(best, label) < confidence_loss(best - 0.5, label)


def test_loss_counts_only_what_has_weight() -> None:
    logits, label = torch.tensor([[1.0, torch.nan]]), torch.tensor([[0.5, torch.nan]])
    mask = torch.tensor([[True, False]])
    assert confidence_loss(logits, label, mask) == pytest.approx(
        0.5 * (1 + 2 * torch.tensor(-1.0).exp().log1p()).item()
    )
    assert confidence_loss(logits, label, torch.zeros(1, 2)) == 0
    weighted = confidence_loss(torch.tensor([0.0, 3.0]), torch.tensor([1.0, 1.0]), torch.tensor([3.0, 1.0]))
    ends = [confidence_loss(torch.tensor([z]), torch.tensor([1.0])) for z in (0.0, 3.0)]
    assert float(weighted) == pytest.approx(float(0.75 * ends[0] + 0.25 * ends[1]))
    for name, kwargs in (("label", {"label": torch.zeros(3)}), ("weight", {"weight": torch.zeros(3)})):
        with pytest.raises(ValueError, match=f"{name}: expected shape"):
            confidence_loss(torch.zeros(2), **{"label": torch.zeros(2), **kwargs})


def test_the_gradient_of_a_masked_nan_is_zero() -> None:
    logits = torch.tensor([1.0, 2.0], requires_grad=True)
    confidence_loss(logits, torch.tensor([0.5, torch.nan]), torch.tensor([1.0, 0.0])).backward()
    assert logits.grad is not None and logits.grad[1] == 0 and logits.grad[0] > 0


class AcceptRatePredictor(torch.nn.Module):
    """A module with the parameters of DeepSpec's head of this name: one linear layer called proj."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(width, 1)


@pytest.mark.parametrize("embedding_size", [0, 3])
def test_the_heads_weights_are_deepspecs(embedding_size: int) -> None:
    head, theirs = ConfidenceHead(5, embedding_size), AcceptRatePredictor(5 + embedding_size)
    assert {k: v.shape for k, v in head.state_dict().items()} == {
        "proj.weight": (1, 5 + embedding_size),
        "proj.bias": (1,),
    }
    head.load_state_dict(theirs.state_dict())
    hidden, embedding = torch.randn(2, 7, 5), torch.randn(2, 7, 3) if embedding_size else None
    features = hidden if embedding is None else torch.cat([hidden, embedding], -1)
    assert torch.equal(head(hidden, embedding), theirs.proj(features)[..., 0])
    assert head(hidden, embedding).shape == (2, 7)
    theirs.load_state_dict(head.state_dict())


def test_the_head_refuses_a_missing_or_superfluous_embedding() -> None:
    with pytest.raises(ValueError, match="embedding: expected one of size 3, got none"):
        ConfidenceHead(5, 3)(torch.zeros(1, 2, 5))
    with pytest.raises(ValueError, match="embedding: expected none, got one"):
        ConfidenceHead(5)(torch.zeros(1, 2, 5), torch.zeros(1, 2, 3))
    with pytest.raises(ValueError, match="hidden_size, embedding_size: expected at least 1 and 0"):
        ConfidenceHead(0)


def test_the_head_learns_the_label() -> None:
    torch.manual_seed(0)
    hidden, embedding = torch.randn(64, 7, 5), torch.randn(64, 7, 3)
    label = torch.sigmoid(hidden[..., 0] - 0.5 * embedding[..., 1] + 0.3)
    head = ConfidenceHead(5, 3)
    optimiser = torch.optim.LBFGS(head.parameters(), max_iter=50)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = head.loss(hidden, embedding, label)
        loss.backward()
        return loss

    optimiser.step(closure)
    assert float((head(hidden, embedding).sigmoid() - label).detach().abs().max()) < 0.01


def test_bfloat16_features_meet_float32_weights() -> None:
    head = ConfidenceHead(5, 3)
    assert head(torch.randn(2, 7, 5).bfloat16(), torch.randn(2, 7, 3)).dtype == torch.float32


def test_previous_tokens() -> None:
    drafts = torch.tensor([[11, 12, 13], [21, 22, 23]])
    assert previous_tokens(torch.tensor([10, 20]), drafts).tolist() == [[10, 11, 12], [20, 21, 22]]
