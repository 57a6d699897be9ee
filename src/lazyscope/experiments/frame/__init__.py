"""What experiments share: a plan, its sweep, its numbers, its picture and its verdict."""
