"""The allocator in a runtime's decode loop: plan on fresh confidences, with the budget from the step before."""

import torch

import dspark_ops

torch.manual_seed(0)
slots, gamma, vocab = 64, 7, 1000
cost = dspark_ops.FloorTable([64, 128, 256, 512], [90.0, 80.0, 60.0, 40.0], 512)  # steps per second by rows
history = torch.zeros(slots, gamma)  # confidences of each slot's last step
written = torch.zeros(slots, dtype=torch.int64)  # generation of the request that they belong to
generation = torch.ones(slots, dtype=torch.int64)  # of the request that has the slot now; a new request raises it
length = torch.full((slots,), 100)
root = torch.randint(vocab, (slots,))

for step in range(5):
    drafts, confidence = torch.randint(vocab, (slots, gamma)), torch.rand(slots, gamma)  # your draft model
    plan = dspark_ops.allocate_verify_lens(
        confidence, cost, history=history, generation=written, expected=generation, min_gain_ppm=2000
    )
    history.copy_(confidence)
    written.copy_(generation)

    rows = int(plan.stats[1])  # on a device: a captured size, see cuda_graph.py
    layout = dspark_ops.ragged_layout(plan.verify_lens, rows, prefix=length, root_tokens=root, draft_tokens=drafts)
    target = torch.randint(vocab, (rows,))  # your target model's choice after each row of layout.verify_ids
    done = dspark_ops.accept_greedy(drafts, target, plan.verify_lens, length, cu_seqlens=layout.cu_seqlens)
    length, root = done.new_seq_len, done.bonus
    print(f"step {step}: {rows} of {slots * (gamma + 1)} rows verified, {int(done.commit_len.sum())} tokens committed")
