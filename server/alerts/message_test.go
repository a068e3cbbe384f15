package alerts

import (
	"encoding/json"
	"errors"
	"net/mail"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cupola/store/cf"
)

func hostileEvents() (all []cf.AlertEvent) {
	a := cf.Alert{Rule: AppCrashing, Severity: cf.AlertCritical, Name: "o/s/<!channel> @everyone *x*\r\nBcc: all@example.com\x1b[2J (web)", Text: strings.Repeat("ä", 5000) + "\n.\nQUIT", Mend: "sudo x"}
	for _, kind := range []string{cf.AlertEventFiring, cf.AlertEventRepeated, cf.AlertEventResolved, cf.AlertEventTest} {
		e := eventOf(&a, kind, time.Unix(0, 0))
		e.ID = "id-" + kind
		all = append(all, e)
	}
	return all
}

func TestNamesOfUsersDoNothingInMessages(t *testing.T) {
	m := message{"example.com", "", hostileEvents()}
	slack, _, err := m.body(FormSlack)
	if err != nil || strings.Contains(string(slack), "<!channel>") || strings.Contains(string(slack), `\u003c!`) {
		t.Errorf("Slack: got %s, %v", slack, err)
	}
	body, taken, err := m.body(FormDiscord)
	var discord struct {
		Content  string
		Mentions struct{ Parse []string } `json:"allowed_mentions"`
	}
	if err := errors.Join(err, json.Unmarshal(body, &discord)); err != nil || discord.Mentions.Parse == nil || len(discord.Content) > 2000 || taken < 1 || taken > 3 || strings.Contains(discord.Content, " *x*") {
		t.Errorf("Discord: got %d events, %s, %v", taken, body, err)
	}
	text, taken := writeMail(cf.AlertSettings{From: "a@example.com", To: []string{"b@example.com"}}, m, time.Now())
	read, err := mail.ReadMessage(strings.NewReader(string(text)))
	if err != nil || read.Header.Get("Bcc") != "" || taken != 4 || strings.Contains(string(text), "\x1b") || read.Header.Get("Message-Id") != "<id-firing@example.com>" {
		t.Errorf("mail: got %d events, %v:\n%s", taken, err, text)
	}
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if len(line) > 998 {
			t.Errorf("mail: a line has %d bytes", len(line))
		}
	}
}

// FuzzMessage holds that no text of users breaks a form.
func FuzzMessage(f *testing.F) {
	f.Add("name", "text", "mend")
	f.Add("\xff<@&>", "\r\n.\r\n", "'`$(x)")
	f.Fuzz(func(t *testing.T, name, text, mend string) {
		a := cf.Alert{Rule: DiskShort, Name: name, Text: text, Mend: mend}
		m := message{"d", "", []cf.AlertEvent{eventOf(&a, cf.AlertEventFiring, time.Now())}}
		for _, form := range []string{FormJSON, FormSlack, FormDiscord} {
			body, taken, err := m.body(form)
			if err != nil || taken != 1 || !json.Valid(body) {
				t.Fatalf("%s: got %d events, %s, %v", form, taken, body, err)
			}
		}
		if s := m.subject(); strings.ContainsAny(s, "\r\n") || !utf8.ValidString(s) || len(s) > maxName {
			t.Errorf("subject %q", s)
		}
		mailed, _ := writeMail(cf.AlertSettings{From: "a@b", To: []string{"c@d"}}, m, time.Now())
		if _, err := mail.ReadMessage(strings.NewReader(string(mailed))); err != nil {
			t.Errorf("mail: %v", err)
		}
		if q := quoted(name); strings.Count(strings.ReplaceAll(q, `'\''`, ""), "'")%2 != 0 {
			t.Errorf("quoted: %s", q)
		}
	})
}

func TestTargetRequests(t *testing.T) {
	for name, c := range map[string]struct {
		in   TargetRequest
		want string // in the error; "": it is good
	}{
		"webhook":     {TargetRequest{Name: "a", Webhook: &WebhookForm{URL: "https://hooks.slack.com/services/x"}}, ""},
		"both":        {TargetRequest{Name: "a", Webhook: &WebhookForm{URL: "https://x"}, Mail: &MailForm{}}, "give webhook or mail"},
		"none":        {TargetRequest{Name: "a"}, "give webhook or mail"},
		"name":        {TargetRequest{Name: "a b", Webhook: &WebhookForm{URL: "https://x"}}, "invalid name"},
		"reserved":    {TargetRequest{Name: "command", Webhook: &WebhookForm{URL: "https://x"}}, "--alert-command"},
		"no URL":      {TargetRequest{Name: "a", Webhook: &WebhookForm{URL: "file:///etc/secret"}}, "invalid url"},
		"form":        {TargetRequest{Name: "a", Webhook: &WebhookForm{URL: "https://x", Form: "xml"}}, `invalid form "xml": give one of json, slack, discord`},
		"CA":          {TargetRequest{Name: "a", Webhook: &WebhookForm{URL: "https://x", CA: "x"}}, "invalid ca"},
		"mail":        {TargetRequest{Name: "a", Mail: &MailForm{Server: "smtp.example.com", From: "a@b.c", To: []string{"Ops <o@b.c>"}}}, ""},
		"server":      {TargetRequest{Name: "a", Mail: &MailForm{Server: "a b:25", From: "a@b.c", To: []string{"o@b.c"}}}, "invalid server"},
		"tls":         {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:25", TLS: "on", From: "a@b.c", To: []string{"o@b.c"}}}, "invalid tls"},
		"from":        {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:25", From: "a@b.c>\r\nRCPT", To: []string{"o@b.c"}}}, "invalid from"},
		"to":          {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:25", From: "a@b.c"}}, "invalid to"},
		"password":    {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:25", User: "u", From: "a@b.c", To: []string{"o@b.c"}}}, "user and password together"},
		"two lines":   {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:25", User: "u\r\nQUIT", Password: "x", From: "a@b.c", To: []string{"o@b.c"}}}, "on one line"},
		"no port":     {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:", From: "a@b.c", To: []string{"o@b.c"}}}, "invalid server"},
		"no recipent": {TargetRequest{Name: "a", Mail: &MailForm{Server: "x:25", From: "a@b.c", To: []string{"nobody"}}}, `invalid to "nobody"`},
	} {
		_, err := c.in.target()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret\"") {
			t.Errorf("%s: the error shows the URL: %v", name, err)
		}
	}
}

func TestErrorsShowNoSecrets(t *testing.T) {
	s := cf.AlertSettings{URL: "https://u:hunter2@127.0.0.1:1/services/T0/SECRET?token=abcd", Pass: "pass-word"}
	err := redact(errors.New("call "+s.URL+" /services/T0/SECRET?token=abcd with pass-word, token=abcd, services/T0/SECRET"), s)
	for _, secret := range []string{"SECRET", "abcd", "pass-word", "hunter2"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s is in %v", secret, err)
		}
	}
	_, err = (&Loop{}).post(t.Context(), &cf.AlertTarget{Kind: cf.AlertWebhook, Settings: s}, hostileEvents())
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("got %v", err)
	}
}
