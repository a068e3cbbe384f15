package databroker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// smtp is a mail server that delivers nothing and shows what it was given; see package
// mail of cmd/lifecycle, which is in every container.
type smtp struct{}

const (
	smtpPort = 2525
	smtpBox  = directory("mails")
	// smtpProgram is the helper's command.
	smtpProgram = contract.Helper + " " + contract.CommandMail
)

func smtpService() service {
	return service{name: "smtp", description: "a mail server that keeps mails for you to look at and delivers none", display: "Mail (sink)", tags: []string{"smtp", "mail", "email"},
		port: smtpPort, tlsPort: smtpPort, tlsAlone: true, plans: []plan{{"small", "64 MB of memory, 256 MB of disk", 64, 256 << 20}}, engine: smtp{}, complaints: []string{"error: "}, ending: "tar",
		software: software{packages: everySuite("tar"), program: "usr/bin/tar"}}
}

// script leaves two thirds of the disk to copies for backups.
func (smtp) script(p plan, tlsRequired bool) string {
	secure := ""
	if tlsRequired {
		secure = " " + tlsCertificate + " " + tlsKey
	}
	return "set -eu\numask 077\nmkdir -p mails users\n" + smtpBox.script(announced(fmt.Sprintf("%s serve %s 0.0.0.0:%d %d%s", smtpProgram, data, smtpPort, p.volumeBytes/3, secure)), "TERM")
}

func (smtp) env(*cf.DataInstance) []lrp.EnvVar { return nil }

func (smtp) client() string { return "exec " + smtpProgram + " change " + data + " 2>&1" }

func (smtp) setUp() string { return "say " + done + "\nquit\n" }

func (e smtp) grant(user, password string) string {
	return "grant " + user + " " + password + "\n" + e.setUp()
}

func (e smtp) revoke(user string) string { return "revoke " + user + "\n" + e.setUp() }

// reload is not needed: the server reads the certificate for each handshake.
func (smtp) reload() string { return "" }

func (smtp) version() string { return "echo 'mails 1'" }
func (smtp) dump() string    { return smtpBox.dump() }
func (smtp) load() string    { return smtpBox.load() }

func (smtp) disownFiles() string { return "rm -rf users" }
func (smtp) disownUsers() string { return "" }

func (smtp) credentials(a access) object {
	return object{"uri": a.url("smtp", "", ""), "host": a.host, "hostname": a.host, "port": a.port, "username": a.user, "password": a.password}
}

// Mail describes a message that an instance of the service smtp was given.
type Mail struct {
	ID       string    `json:"id"`
	Received time.Time `json:"received_at"`
	From     string    `json:"from"` // of the envelope, like To
	To       []string  `json:"to"`
	Subject  string    `json:"subject"`
	Size     int64     `json:"size"`
}

// maxMailList and maxMail bound what a list of mails and a mail may be, in bytes.
const (
	maxMailList = 4 << 20
	maxMail     = 16 << 20
)

// Mails lists the last mails of an instance, the newest first.
func (s *Service) Mails(ctx context.Context, instanceGUID string) (all []Mail, err error) {
	i, err := s.mailInstance(ctx, instanceGUID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statementsT)
	defer cancel()
	err = s.broker.attached(ctx, i, func(session io.ReadWriter) error {
		text, err := io.ReadAll(io.LimitReader(session, maxMailList))
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return errCut
		}
		return json.Unmarshal(text, &all)
	}, "exec "+smtpProgram+" list "+data)
	return all, err
}

// Mail is the content of a mail of an instance.
func (s *Service) Mail(ctx context.Context, instanceGUID, id string) (content []byte, err error) {
	all, err := s.Mails(ctx, instanceGUID)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(m Mail) bool { return m.ID == id })
	if at < 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Mail not found")
	}
	i, err := s.mailInstance(ctx, instanceGUID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statementsT)
	defer cancel()
	err = s.broker.attached(ctx, i, func(session io.ReadWriter) error {
		content, err = io.ReadAll(io.LimitReader(session, min(all[at].Size, maxMail)))
		if err == nil && int64(len(content)) < all[at].Size {
			err = errCut
		}
		return err
	}, "exec "+smtpProgram+" show "+data+` "$1"`, id)
	return content, err
}

func (s *Service) mailInstance(ctx context.Context, guid string) (*cf.DataInstance, error) {
	if s == nil {
		return nil, cf.Unprocessable("%s", errOff)
	}
	i, err := s.broker.ready(ctx, guid)
	if store.IsNotFound(err) || err == nil && i.Service != "smtp" {
		return nil, cf.Unprocessable("Only service instances of the built-in broker's service smtp have mails.")
	}
	if IsNotRunning(err) {
		err = cf.Unprocessable("%s", err)
	}
	return i, err
}
