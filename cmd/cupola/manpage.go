package main

import (
	"fmt"
	"io"
	"strings"

	"cupola/cmd/cupola/cli"
	"cupola/cmd/cupola/command"
)

type manCmd struct{}

// Run writes the manual page.
func (manCmd) Run(e *command.Env) error { return writeManual(e.Out) }

// writeManual writes cupola(1), made of the command table, in man(7)'s macros.
func writeManual(w io.Writer) error {
	all, err := commands()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, ".TH CUPOLA 1 \"\" \"cupola %s\" \"cupola\"\n.SH NAME\ncupola \\- %s\n", roff(command.BuildVersion()), roff(strings.TrimSuffix(all[0].Help, ".")))
	b.WriteString(".SH SYNOPSIS\n.B cupola\n.I command\n.RI [ flags ]\n.SH FLAGS OF ALL COMMANDS\n")
	for _, f := range all[0].Flags {
		writeFlag(&b, f)
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range all[1:] {
		writeCommand(&b, c)
	}
	b.WriteString(manualEnd)
	_, err = io.WriteString(w, b.String())
	return err
}

func writeCommand(b *strings.Builder, c *cli.Command) {
	if len(c.Commands) > 0 {
		return // those below it stand for it
	}
	fmt.Fprintf(b, ".SS \"cupola %s", roff(strings.Join(c.Path(), " ")))
	for _, p := range c.Args {
		fmt.Fprintf(b, " %s", roff(p.String()))
	}
	fmt.Fprintf(b, "\"\n%s\n", roff(c.Help))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "Also called %s.\n", roff(strings.Join(c.Aliases, ", ")))
	}
	for _, p := range c.Args {
		fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Name), roff(p.Help))
	}
	for _, f := range c.Flags {
		writeFlag(b, f)
	}
}

func writeFlag(b *strings.Builder, f *cli.Flag) {
	if f.Hidden {
		return
	}
	fmt.Fprintf(b, ".TP\n.B \\-\\-%s", roff(f.Name))
	if f.TakesValue() {
		fmt.Fprintf(b, "=%s", roff(f.Sample()))
	}
	fmt.Fprintf(b, "\n%s\n", roff(f.Help))
	if len(f.Envs) > 0 {
		fmt.Fprintf(b, "In the environment: %s.\n", roff(strings.Join(f.Envs, ", ")))
	}
}

// roff writes text so that it means itself.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "…", `\&...`, "→", `\(->`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

const manualEnd = `.SH FILES
.TP
.I /var/lib/cupola
The data directory: everything that cupola keeps.
.TP
.I /etc/cupola/cupola.yml
Flags of
.BR "cupola serve" ,
by their names, where
.B cupola install
was run.
.SH EXIT STATUS
0, 1 when the command failed, or 2 when it could not be understood.
.SH SEE ALSO
.BR cf (1),
.BR systemd.socket (5)
`
