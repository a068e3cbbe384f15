package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"cupola/cmd/cupola/command"
	"cupola/server"
	"cupola/server/admin"
	"cupola/server/cells"
	"cupola/server/config"
	"cupola/server/doctor"
)

type doctorCmd struct {
	command.DaemonFlags
	HTTP   string `help:"The address of 'cupola serve --http'; by default that of the running daemon of --data-dir, or else 127.0.0.1:8080." env:"CUPOLA_HTTP" placeholder:"ADDR"`
	HTTPS  string `help:"The address of 'cupola serve --https'; by default that of the running daemon of --data-dir, or else 127.0.0.1:8443." env:"CUPOLA_HTTPS" placeholder:"ADDR"`
	Domain string `help:"Domain of apps." default:"localhost" env:"CUPOLA_DOMAIN"`
	Engine string `help:"What is to start containers, as in 'cupola serve --engine'." default:"launch" env:"CUPOLA_ENGINE" placeholder:"ENGINE"`

	Cells      cells.List `help:"As in 'cupola serve --cells': with none, what only containers on this machine need is not checked." placeholder:"YAML" env:"CUPOLA_CELLS"`
	Kubernetes []string   `help:"Try this cluster, as in 'cupola serve --kubernetes': create pods in a dry run. May be repeated." placeholder:"NAME=FILE" sep:"none" env:"CUPOLA_KUBERNETES"`

	Leaks bool `help:"List leaks of stopped daemons instead: mounts, links, cgroups, processes and directories."`
	JSON  bool `help:"Print JSON." name:"json"`
}

// Run checks the machine; the exit code is 1 if a check fails, or if something
// leaked.
func (d *doctorCmd) Run(e *command.Env) error {
	c := config.Config{DataDir: d.DataDir, HTTP: d.HTTP, HTTPS: d.HTTPS, Domain: d.Domain, Engine: d.Engine, Log: e.Log,
		Config: cells.Config{Cells: d.Cells, Kubernetes: d.Kubernetes}}
	if d.Leaks {
		return d.leaks(e)
	}
	results := slices.Concat(server.Checkup(e.Ctx, c), admin.CheckKernels(e.Ctx, d.DataDir), admin.CheckServices(e.Ctx, d.DataDir), admin.CheckTunnels(e.Ctx, d.DataDir))
	if d.JSON {
		if err := command.WriteJSON(e.Out, results); err != nil {
			return err
		}
	} else {
		for i := range results {
			results[i].Fix = e.Called(results[i].Fix)
		}
		writeResults(e.Out, results, look{color: colored(e), width: command.Width(e)})
	}
	if _, _, fail := doctor.Count(results); fail > 0 {
		return command.ExitCode(1)
	}
	return nil
}

func (d *doctorCmd) leaks(e *command.Env) error {
	if os.Geteuid() != 0 {
		return errors.New("finding leaks requires root: run it with sudo")
	}
	leaks, err := admin.FindLeaks(e.Ctx, d.Target(e))
	if err != nil {
		return err
	}
	if d.JSON {
		if err := command.WriteJSON(e.Out, append([]doctor.Leak{}, leaks...)); err != nil {
			return err
		}
	} else {
		for i := range leaks {
			leaks[i].Fix = e.Called(leaks[i].Fix)
		}
		writeLeaks(e.Out, leaks)
	}
	if len(leaks) > 0 {
		return command.ExitCode(1)
	}
	return nil
}

func writeLeaks(w io.Writer, leaks []doctor.Leak) {
	if len(leaks) == 0 {
		fmt.Fprintln(w, "nothing leaked")
		return
	}
	for _, l := range leaks {
		fmt.Fprintf(w, "%s\n    %s\n", l, l.Fix)
	}
	fmt.Fprintf(w, "\n%d leaked; the command below each removes it\n", len(leaks))
}

// look is how output should look. The zero value is plain.
type look struct {
	color bool
	width int // of the terminal; 0 does not wrap
}

// colored follows no-color.org.
func colored(e *command.Env) bool {
	return e.Terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// writeResults writes a line for each result, its fix below, and a summary.
// Commands are not wrapped, so that users can copy them.
func writeResults(w io.Writer, results []doctor.Result, l look) {
	names := 0
	for _, r := range results {
		names = max(names, len(r.Name))
	}
	indent := strings.Repeat(" ", len("fail  ")+names+2)
	for _, r := range results {
		fmt.Fprintf(w, "%s  %-*s  %s\n", l.level(r.Level), names, r.Name, l.wrap(r.Detail, indent))
		if r.Level != doctor.OK && r.Fix != "" {
			fmt.Fprintf(w, "%s%s\n", indent, l.paint(1, r.Fix))
		}
	}
	ok, warn, fail := doctor.Count(results)
	fmt.Fprintf(w, "\n%d OK, %s, %s\n", ok, command.Counted(warn, "warning"), command.Counted(fail, "failure"))
}

func (l look) level(v doctor.Level) string {
	const red, green, yellow = 31, 32, 33
	return l.paint([]int{green, yellow, red}[v], fmt.Sprintf("%-4s", v))
}

// paint sets text in a colour of the terminal; 1 is bold.
func (l look) paint(code int, text string) string {
	if !l.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, text)
}

// wrap breaks text between words, so that it stays right of the indent.
func (l look) wrap(text, indent string) string {
	room := l.width - len(indent)
	if l.width == 0 || room < 20 {
		return text
	}
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > room:
			b.WriteString("\n" + indent)
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
