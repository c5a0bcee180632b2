"""WebShop: a shop of Amazon products, an instruction, a purchase (arXiv:2207.01206)."""
