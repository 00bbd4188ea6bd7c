"""What calls ragas from elsewhere, which is not there; an import says what to do."""
