"""A refund agent, and the payment provider that it works against."""
