"""Moving the traffic: what share of clients the candidate answers, who decides it, and how it comes back by itself."""
