package httpapi

// Post tries to post by the client that asks the provider.
func (s *Source) Post(address string) error {
	resp, err := s.client.Post(address, "application/json", nil)
	if err == nil {
		_ = resp.Body.Close() // it should not have come
	}
	return err
}

// Text gives the text of a field.
func (p Path) Text(v any) (string, error) { return p.text(v) }
