"""Every message of Wayline and the subject it travels on."""
