"""Side by side with libraries a user would take instead, installed only for the benchmark."""
