"""What people see and keep: tables, HTML, numbers in words, and files that are written whole or not at all."""
