// Command mailer sends the mails *.eml of its directory to the service that it is bound to, and waits.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/smtp"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

type credentials struct {
	Host, Username, Password string
	Port                     int
}

func main() {
	if err := send(); err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
}

func send() error {
	var bound map[string][]struct{ Credentials credentials }
	if err := json.Unmarshal([]byte(os.Getenv("VCAP_SERVICES")), &bound); err != nil {
		return err
	}
	if len(bound["smtp"]) == 0 {
		return fmt.Errorf("not bound to smtp: %v", bound)
	}
	c := bound["smtp"][0].Credentials
	mails, err := filepath.Glob("*.eml")
	for _, name := range mails {
		content, err := os.ReadFile(name)
		if err == nil {
			err = smtp.SendMail(fmt.Sprintf("%s:%d", c.Host, c.Port), plain(c), "app@example.com", []string{"user@example.com", "boss@example.com"}, content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Println("sent", name)
	}
	return err
}

// plain is AUTH PLAIN without TLS, which net/smtp's refuses.
type plain credentials

func (p plain) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + p.Username + "\x00" + p.Password), nil
}

func (plain) Next([]byte, bool) ([]byte, error) { return nil, nil }
