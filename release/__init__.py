"""What a release is made with: wheels, licence texts, addresses."""
