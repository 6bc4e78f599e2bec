"""Groups facts by what they are about: the one grouping that pages and handbooks share."""
