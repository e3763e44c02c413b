"""The fixtures every test may ask for: real servers, started when first used."""

pytest_plugins = ["wayline.testkit.fixtures"]
