"""Who a request is from: credentials, what they allow, and the service that Envoy asks about each request."""
