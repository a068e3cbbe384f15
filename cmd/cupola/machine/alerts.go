package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/alerts"
	"cupola/store/cf"
)

// AlertsCmd is cupola alerts.
type AlertsCmd struct {
	List         alertListCmd     `cmd:"" default:"withargs" help:"List the alerts that fire, and recent ones."`
	Targets      targetListCmd    `cmd:"" help:"List where alerts are sent."`
	AddTarget    targetAddCmd     `cmd:"" help:"Send alerts to a webhook or by mail."`
	RemoveTarget targetRemoveCmd  `cmd:"" help:"Stop sending alerts to a target."`
	Test         targetTestCmd    `cmd:"" help:"Send a test message to a target now."`
	Silence      silenceCmd       `cmd:"" help:"Silence alerts for a while: those of a rule or of a subject, or all."`
	Silences     silenceListCmd   `cmd:"" help:"List the silences."`
	Unsilence    silenceDeleteCmd `cmd:"" help:"End a silence."`
	Rules        ruleListCmd      `cmd:"" help:"List the rules, and what each of them watches."`
	SetRule      ruleSetCmd       `cmd:"" help:"Change a rule: disable it, its duration or its threshold."`
}

// listOf is a list of the API.
type listOf[T any] struct {
	Resources []T `json:"resources"`
}

// fetch gets a list of alerts' API.
func fetch[T any](e *command.Env, f *capi.Flags, path string) (all []T, err error) {
	api, err := f.Login(e.Ctx)
	if err != nil {
		return nil, err
	}
	var list listOf[T]
	err = api.Call(e.Ctx, "GET", alerts.Path+path, nil, &list)
	return list.Resources, err
}

// change makes a call that changes something.
func change(e *command.Env, f *capi.Flags, method, path string, body, out any) error {
	api, err := f.Login(e.Ctx)
	if err != nil {
		return err
	}
	return api.Call(e.Ctx, method, alerts.Path+path, body, out)
}

type alertListCmd struct {
	capi.Flags
	All  bool `help:"List also those that are over, and those that do not fire yet."`
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the alerts.
func (c *alertListCmd) Run(e *command.Env) error {
	all, err := fetch[alerts.AlertView](e, &c.Flags, "")
	if err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	targets, err := fetch[alerts.TargetView](e, &c.Flags, "/targets")
	if err != nil {
		return err
	}
	if err := c.write(e, all); err != nil {
		return err
	}
	if len(targets) == 0 {
		fmt.Fprintln(e.Out, e.Called("\nAlerts have no target: add one with 'cupola alerts add-target NAME --webhook URL'."))
	}
	for _, t := range targets {
		if t.FailingSince != nil {
			fmt.Fprintf(e.Out, "\nThe target %s takes no messages since %s (%s); %s, next try at %s.\n", t.Name, command.When(*t.FailingSince), t.Failure,
				command.Counted(t.Waiting, "event")+" waiting", command.When(*t.RetryAt))
		}
	}
	return nil
}

func (c *alertListCmd) write(e *command.Env, all []alerts.AlertView) error {
	t := command.Table{Width: command.Width(e)}
	t.Add("STATE", "SEVERITY", "RULE", "SINCE", "SUBJECT AND TEXT")
	n, recent := 0, 0
	for _, a := range all {
		if a.State != cf.AlertFiring && !c.All {
			if a.State == cf.AlertResolved {
				recent++
			}
			continue
		}
		n++
		state := strings.ToLower(string(a.State))
		if a.Silenced {
			state += " (silenced)"
		}
		text := a.Subject + ": " + a.Text
		if a.Mend != "" && a.State != cf.AlertResolved {
			text += " See: " + a.Mend
		}
		t.Add(state, string(a.Severity), a.Rule, command.When(a.Since), text)
	}
	if n == 0 {
		fmt.Fprintln(e.Out, "No alert fires.")
	} else if err := t.Write(e.Out); err != nil {
		return err
	}
	if recent > 0 {
		fmt.Fprintf(e.Out, "\n%s\n", e.Called(command.Counted(recent, "alert")+" over recently: see 'cupola alerts list --all'."))
	}
	return nil
}

type targetListCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the targets.
func (c *targetListCmd) Run(e *command.Env) error {
	all, err := fetch[alerts.TargetView](e, &c.Flags, "/targets")
	if err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	t := command.Table{Width: command.Width(e)}
	t.Add("NAME", "KIND", "WHERE", "LAST SENT", "WAITING", "STATE")
	for _, v := range all {
		kind, state, sent := v.Kind, "works", time.Time{}
		if v.Form != "" {
			kind += " (" + v.Form + ")"
		}
		if v.SentAt != nil {
			sent = *v.SentAt
		} else {
			state = "nothing sent yet"
		}
		if v.FailingSince != nil {
			state = "fails since " + command.When(*v.FailingSince) + ": " + v.Failure
		}
		t.Add(v.Name, kind, v.Where, command.When(sent), fmt.Sprint(v.Waiting), state)
	}
	return t.Write(e.Out)
}

type targetAddCmd struct {
	capi.Flags
	Name     string   `arg:"" help:"The target's name."`
	Webhook  string   `help:"Post alerts to this address; it is kept sealed." placeholder:"URL"`
	Form     string   `help:"The webhook's form: json, slack or discord; by default what the address asks for." placeholder:"FORM"`
	Mail     []string `help:"Send alerts to these mail addresses." placeholder:"ADDRESS"`
	Server   string   `help:"The mail server, like smtp.example.com:587." placeholder:"HOST:PORT"`
	TLS      string   `name:"tls" help:"How to encrypt the connection to the mail server: starttls, tls or none; by default tls at the port 465, else starttls." placeholder:"MODE"`
	From     string   `help:"The sender's address; by default the first of --mail." placeholder:"ADDRESS"`
	SMTPUser string   `name:"smtp-user" help:"User of the mail server; its password is read from the first line of the standard input, or from CUPOLA_SMTP_PASSWORD." placeholder:"USER"`
	CA       string   `name:"ca" help:"File of a CA to trust besides those of the machine, in PEM." placeholder:"FILE"`
}

// Run adds a target.
func (c *targetAddCmd) Run(e *command.Env) error {
	in, err := c.request(os.Stdin)
	if err != nil {
		return err
	}
	var made alerts.TargetView
	if err := change(e, &c.Flags, "POST", "/targets", in, &made); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Added the target %s: %s, %s.\n%s\n", made.Name, made.Kind, made.Where, e.Called("Try it with 'cupola alerts test "+made.Name+"'."))
	return err
}

func (c *targetAddCmd) request(stdin io.Reader) (in alerts.TargetRequest, err error) {
	in.Name = c.Name
	ca := ""
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return in, fmt.Errorf("read --ca: %w", err)
		}
		ca = string(text)
	}
	switch {
	case (c.Webhook == "") == (len(c.Mail) == 0):
		return in, errors.New("give --webhook or --mail (a command is set by 'serve --alert-command')")
	case c.Webhook != "":
		in.Webhook = &alerts.WebhookForm{URL: c.Webhook, Form: c.Form, CA: ca}
		return in, nil
	case c.Server == "":
		return in, errors.New("--mail needs --server, a mail server like smtp.example.com:587")
	}
	in.Mail = &alerts.MailForm{Server: c.Server, TLS: c.TLS, User: c.SMTPUser, From: c.From, To: c.Mail, CA: ca}
	if c.From == "" {
		in.Mail.From = c.Mail[0]
	}
	if c.SMTPUser != "" {
		in.Mail.Password, err = smtpPassword(stdin)
	}
	return in, err
}

// smtpPassword reads a password. It is not an argument, since other users can see those.
func smtpPassword(stdin io.Reader) (string, error) {
	if p := os.Getenv("CUPOLA_SMTP_PASSWORD"); p != "" {
		return p, nil
	}
	line, err := bufio.NewReader(io.LimitReader(stdin, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("--smtp-user needs a password: give it on the standard input, or in CUPOLA_SMTP_PASSWORD")
	}
	return line, nil
}

type targetArg struct {
	capi.Flags
	Name string `arg:"" help:"The target's name."`
}

type targetRemoveCmd struct{ targetArg }

// Run removes a target.
func (c *targetRemoveCmd) Run(e *command.Env) error {
	if err := change(e, &c.Flags, "DELETE", "/targets/"+url.PathEscape(c.Name), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "Removed the target %s.\n", c.Name)
	return err
}

type targetTestCmd struct{ targetArg }

// Run sends a test message.
func (c *targetTestCmd) Run(e *command.Env) error {
	var sent struct {
		To string `json:"sent_to"`
	}
	if err := change(e, &c.Flags, "POST", "/targets/"+url.PathEscape(c.Name)+"/test", nil, &sent); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "Sent a test message to %s: %s.\n", c.Name, sent.To)
	return err
}

type silenceCmd struct {
	capi.Flags
	For     string `required:"" help:"How long, like 2h." placeholder:"TIME"`
	Rule    string `help:"Only alerts of this rule." placeholder:"RULE"`
	Subject string `help:"Only alerts of this subject, or of all in it: an org, ORG/SPACE or ORG/SPACE/APP." placeholder:"NAME"`
	Comment string `help:"Why." placeholder:"TEXT"`
}

// Run makes a silence.
func (c *silenceCmd) Run(e *command.Env) error {
	var made alerts.SilenceView
	in := alerts.SilenceRequest{Rule: c.Rule, Subject: c.Subject, For: c.For, Comment: c.Comment}
	if err := change(e, &c.Flags, "POST", "/silences", in, &made); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "Silence %s ends at %s. Alerts that still fire then are sent then.\n", made.GUID, command.When(made.EndsAt))
	return err
}

type silenceListCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the silences.
func (c *silenceListCmd) Run(e *command.Env) error {
	all, err := fetch[alerts.SilenceView](e, &c.Flags, "/silences")
	if err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	t := command.Table{Width: command.Width(e)}
	t.Add("SILENCE", "ENDS", "RULE", "SUBJECT", "COMMENT")
	for _, s := range all {
		t.Add(s.GUID, command.When(s.EndsAt), anyOf(s.Rule), anyOf(s.Subject), s.Comment)
	}
	return t.Write(e.Out)
}

func anyOf(text string) string {
	if text == "" {
		return "any"
	}
	return text
}

type silenceDeleteCmd struct {
	capi.Flags
	Silence string `arg:"" help:"The silence, as 'cupola alerts silences' lists it."`
}

// Run ends a silence.
func (c *silenceDeleteCmd) Run(e *command.Env) error {
	return change(e, &c.Flags, "DELETE", "/silences/"+url.PathEscape(c.Silence), nil, nil)
}

type ruleListCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the rules.
func (c *ruleListCmd) Run(e *command.Env) error {
	all, err := fetch[alerts.RuleView](e, &c.Flags, "/rules")
	if err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	t := command.Table{Width: command.Width(e)}
	t.Add("RULE", "SEVERITY", "FOR", "THRESHOLD", "WHAT")
	for _, r := range all {
		threshold, severity := "-", string(r.Severity)
		if r.Threshold != nil {
			threshold = fmt.Sprintf("%g %s", *r.Threshold, r.Unit)
		}
		if !r.Enabled {
			severity = "disabled"
		}
		t.Add(r.Name, severity, r.For, threshold, r.Help)
	}
	return t.Write(e.Out)
}

type ruleSetCmd struct {
	capi.Flags
	Name      string   `arg:"" help:"The rule."`
	For       *string  `help:"How long the condition must last before the alert fires, like 5m." placeholder:"TIME"`
	Threshold *float64 `help:"The threshold, in the unit that 'cupola alerts rules' shows." placeholder:"N"`
	Disable   bool     `help:"Look for it no longer."`
	Reset     bool     `help:"Use the defaults again."`
}

// Run changes a rule. Flags that are not given have their defaults.
func (c *ruleSetCmd) Run(e *command.Env) error {
	given := c.For != nil || c.Threshold != nil || c.Disable
	if given == c.Reset {
		return errors.New("give --for, --threshold or --disable; or --reset alone")
	}
	in := alerts.Setting{For: c.For, Threshold: c.Threshold}
	if c.Disable {
		off := false
		in.Enabled = &off
	}
	var r alerts.RuleView
	if err := change(e, &c.Flags, "PATCH", "/rules/"+url.PathEscape(c.Name), in, &r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "Changed the rule %s.\n", r.Name)
	return err
}
