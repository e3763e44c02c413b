"""Run the command line."""

from wayline.standalone.cli import main

main()
