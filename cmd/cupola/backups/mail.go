package backups

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type mailsCmd struct {
	instanceFlags
	Mail string `arg:"" optional:"" help:"The mail to show, as the list names it, or 'last'. Default: list the mails."`
	JSON bool   `help:"Print the list as JSON." name:"json"`
}

// mail is a mail as the API lists it.
type mail struct {
	ID       string    `json:"id"`
	Received time.Time `json:"received_at"`
	From     string    `json:"from"`
	To       []string  `json:"to"`
	Subject  string    `json:"subject"`
	Size     int64     `json:"size"`
}

// Run lists mails, or shows one.
func (m *mailsCmd) Run(e *command.Env) error {
	c, guid, err := m.find(e.Ctx)
	if err != nil {
		return err
	}
	if m.Mail != "" && m.Mail != "last" {
		return m.show(e, c, guid, m.Mail)
	}
	var list struct{ Resources []mail }
	if err := c.Call(e.Ctx, http.MethodGet, path(guid)+"/mails", nil, &list); err != nil {
		return err
	}
	switch {
	case m.JSON:
		return command.WriteJSON(e.Out, list.Resources)
	case len(list.Resources) == 0:
		fmt.Fprintf(e.Out, "There are no mails in %s.\n", m.Instance)
		return nil
	case m.Mail == "last":
		return m.show(e, c, guid, list.Resources[0].ID)
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "MAIL\tRECEIVED\tFROM\tTO\tSIZE\tSUBJECT")
	for _, one := range list.Resources {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, command.When(one.Received), command.Printable(one.From), command.Printable(strings.Join(one.To, " ")), command.BytesText(one.Size), command.Printable(one.Subject))
	}
	return t.Flush()
}

// show writes a mail. On a terminal, what would control it is left out.
func (m *mailsCmd) show(e *command.Env, c *capi.Client, guid, id string) error {
	body, err := c.Download(e.Ctx, path(guid)+"/mails/"+url.PathEscape(id))
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	text := string(content)
	if e.Terminal {
		lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
		for n := range lines {
			lines[n] = command.Printable(lines[n])
		}
		text = strings.Join(lines, "\n")
	}
	_, err = io.WriteString(e.Out, text)
	return err
}

// printable is text without what would control a terminal: apps send what they like.
