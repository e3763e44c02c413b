"""What is remembered: subjects, insights about them, and facts about users."""
