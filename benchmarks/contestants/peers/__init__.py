"""The libraries one could pick instead, each by its own documented calls, with equal settings where it has them."""
