"""Pages of the docs that are made by programs; `registry` lists them."""
