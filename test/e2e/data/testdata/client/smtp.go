package main

import (
	"context"
	"fmt"
	"net/smtp"
)

// send sends a mail with a subject.
func send(_ context.Context, c credentials, request string) (string, error) {
	return "sent", smtp.SendMail(fmt.Sprintf("%s:%d", c.Host, c.Port), plain(c), "app@example.com", []string{"user@example.com"}, []byte("Subject: "+request+"\r\n\r\nhello\r\n"))
}

// plain is AUTH PLAIN without TLS, which net/smtp's refuses.
type plain credentials

func (p plain) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + p.Username + "\x00" + p.Password), nil
}

func (plain) Next([]byte, bool) ([]byte, error) { return nil, nil }
