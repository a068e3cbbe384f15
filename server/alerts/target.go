package alerts

import (
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"cupola/runtime/pattern"
	"cupola/store"
	"cupola/store/cf"
)

// TargetRequest asks for a target: a webhook or a mail server.
type TargetRequest struct {
	Name    string       `json:"name"`
	Webhook *WebhookForm `json:"webhook,omitempty"`
	Mail    *MailForm    `json:"mail,omitempty"`
}

// WebhookForm is an address that messages are posted to.
type WebhookForm struct {
	URL  string `json:"url"`
	Form string `json:"form,omitempty"` // json, slack or discord; "": by the address
	CA   string `json:"ca,omitempty"`   // in PEM
}

// MailForm is a mail server with the addresses to use.
type MailForm struct {
	Server   string   `json:"server"`        // host or host:port
	TLS      string   `json:"tls,omitempty"` // starttls, tls or none; "": by the port
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	From     string   `json:"from"`
	To       []string `json:"to"`
	CA       string   `json:"ca,omitempty"` // in PEM
}

// Bounds of targets.
const (
	maxTargets = 50
	maxTo      = 50
	maxURL     = 2000
	maxCA      = 64 << 10
)

var targetName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// target checks a request; errors name the field.
func (r TargetRequest) target() (t *cf.AlertTarget, err error) {
	t = &cf.AlertTarget{Name: r.Name}
	switch {
	case !targetName().MatchString(r.Name):
		return nil, invalid("invalid name %q: give up to 63 letters, digits, dots, dashes and underscores", r.Name)
	case r.Name == CommandTarget:
		return nil, invalid("invalid name %q: it is that of the target of serve --alert-command", r.Name)
	case (r.Webhook == nil) == (r.Mail == nil):
		return nil, invalid("give webhook or mail: commands are set by serve --alert-command alone")
	case r.Webhook != nil:
		t.Kind = cf.AlertWebhook
		t.Settings, err = r.Webhook.settings()
	default:
		t.Kind = cf.AlertMail
		t.Settings, err = r.Mail.settings()
	}
	if err == nil {
		err = checkCA(t.Settings.CA)
	}
	return t, err
}

func checkCA(ca string) error {
	if _, err := tlsConfig(ca, ""); err != nil || len(ca) > maxCA {
		return invalid("invalid ca: give certificates in PEM, at most %d bytes", maxCA)
	}
	return nil
}

func (w *WebhookForm) settings() (s cf.AlertSettings, err error) {
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(w.URL) > maxURL {
		return s, invalid("invalid url: give an address like https://hooks.example.com/services/T0/B0/secret") // without the URL, which is a secret
	}
	form := w.Form
	if form == "" {
		form = formOf(u.Hostname(), u.Path)
	}
	if forms := []string{FormJSON, FormSlack, FormDiscord}; !slices.Contains(forms, form) {
		return s, invalid("invalid form %q: give one of %s", form, strings.Join(forms, ", "))
	}
	return cf.AlertSettings{URL: w.URL, Form: form, CA: w.CA}, nil
}

// The ports of mail servers: submission, and submission by TLS.
const (
	portSubmission = "587"
	portTLS        = "465"
)

func (m *MailForm) settings() (s cf.AlertSettings, err error) {
	server := m.Server
	if host, port, err := net.SplitHostPort(server); err != nil {
		port = portSubmission
		if m.TLS == TLSFirst {
			port = portTLS
		}
		server = net.JoinHostPort(strings.Trim(server, "[]"), port)
	} else if host == "" || port == "" {
		server = ""
	}
	if m.Server == "" || server == "" || strings.ContainsFunc(server, func(r rune) bool { return printed(r) != r || r == ' ' }) {
		return s, invalid("invalid server %q: give a mail server like smtp.example.com:587", m.Server)
	}
	mode := m.TLS
	if mode == "" {
		mode = TLSStart
		if strings.HasSuffix(server, ":"+portTLS) {
			mode = TLSFirst
		}
	}
	if modes := []string{TLSStart, TLSFirst, TLSNone}; !slices.Contains(modes, mode) {
		return s, invalid("invalid tls %q: give one of %s", mode, strings.Join(modes, ", "))
	}
	s = cf.AlertSettings{Server: server, TLS: mode, User: m.User, Pass: m.Password, CA: m.CA}
	return s, m.addresses(&s)
}

func (m *MailForm) addresses(s *cf.AlertSettings) error {
	if (m.User == "") != (m.Password == "") {
		return invalid("give user and password together, or none of them")
	}
	if strings.ContainsAny(m.User+m.Password, "\r\n\x00") {
		return invalid("invalid user or password: they must be on one line")
	}
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return invalid("invalid from %q: give a mail address", m.From)
	}
	s.From = from.String()
	if len(m.To) == 0 || len(m.To) > maxTo {
		return invalid("invalid to: give 1 to %d mail addresses", maxTo)
	}
	for _, text := range m.To {
		to, err := mail.ParseAddress(text)
		if err != nil {
			return invalid("invalid to %q: give a mail address", text)
		}
		s.To = append(s.To, to.String())
	}
	return nil
}

// addTarget keeps a target. It gets what fires from now on, and what fires already.
func addTarget(tx *store.Tx, r TargetRequest) (*cf.AlertTarget, error) {
	t, err := r.target()
	if err != nil {
		return nil, err
	}
	n, err := store.AlertTargets.Count(tx, store.Query{})
	if err != nil {
		return nil, err
	}
	if n >= maxTargets {
		return nil, invalid("there are %d targets: delete one first", n)
	}
	if _, err := findTarget(tx, r.Name); err == nil {
		return nil, invalid("there is a target %q: delete it first, or give another name", r.Name)
	}
	if err := store.AlertTargets.Insert(tx, t); err != nil {
		return nil, err
	}
	firing, err := store.Alerts.By(tx, "states", string(cf.AlertFiring))
	if err != nil {
		return nil, err
	}
	for _, a := range firing {
		if a.Announced {
			if err := queue(tx, t.GUID, eventOf(a, cf.AlertEventFiring, tx.Now)); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func findTarget(tx *store.Tx, name string) (*cf.AlertTarget, error) {
	return store.AlertTargets.First(tx, store.Query{Where: map[string][]string{"names": {name}}})
}
