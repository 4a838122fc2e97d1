"""What an answer must keep to: the schemas of a request, and how a model is held to them."""
