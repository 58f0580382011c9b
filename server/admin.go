package server

import "context"

type admin struct{}

func (s *Server) startAdmin(ctx context.Context) error { return nil }
func (s *Server) stopAdmin()                           {}
