"""What a training waits for: times of its steps, use of the machine beside them, and what a doctor would say."""
