"""What operators see and say: parked orders, one order with what each word would do, redrives, holds."""
