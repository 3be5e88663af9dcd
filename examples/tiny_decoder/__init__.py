"""A tiny decoder that speculates with dspark_ops only; README.md beside this file says what it shows."""
