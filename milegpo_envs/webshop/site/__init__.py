"""The shop as a web site, over the same rules and the same layout as the text environment."""
