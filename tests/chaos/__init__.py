"""Real processes die, and real jobs misbehave: every task still ends as promised, and nothing stays behind."""
