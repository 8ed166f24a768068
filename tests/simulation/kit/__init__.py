"""What makes a world repeatable to the byte: a runner, a network, machines that die."""
