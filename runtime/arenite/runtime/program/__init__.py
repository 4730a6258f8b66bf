"""What the native core runs: steps over tensors that lie where the plan put them."""
