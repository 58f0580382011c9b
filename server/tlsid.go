package server

func (c *conn) handshakeTLS() bool { return true }
