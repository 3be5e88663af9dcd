"""One file per operator: schema, fake, checks and the public function. Kernels are in reference/ and csrc/."""
