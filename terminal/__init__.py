"""What people type and see: reading orders from flags and files, following them, tables. Decides nothing."""
