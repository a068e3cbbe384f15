package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/admin"
	"cupola/server/admin/support"
	"cupola/server/datadir"
)

// SupportCmd is cupola support-bundle.
type SupportCmd struct {
	command.DaemonFlags
	Output  string `help:"The file to write; by default cupola-support-TIME.tar.gz." placeholder:"FILE"`
	Replace bool   `help:"Overwrite an existing file."`
}

// collectTime is how long the daemon may take: one that hangs is why a bundle is made.
const collectTime = 3 * time.Minute

// Run writes the bundle with what there is. Without an answer of the daemon it has facts
// about the machine, and why there is no more.
func (c *SupportCmd) Run(e *command.Env) error {
	dir, err := c.Root()
	if err != nil {
		return err
	}
	if err := c.Known(); err != nil {
		return err
	}
	name := "cupola-support-" + time.Now().UTC().Format("20060102T150405Z")
	if c.Output == "" {
		c.Output = name + ".tar.gz"
	}
	if _, err := os.Lstat(c.Output); err == nil && !c.Replace {
		return fmt.Errorf("%s already exists: give another --output, or --replace", c.Output)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, asked := c.collect(e, dir)
	if e.Ctx.Err() != nil {
		return errors.New("interrupted")
	}
	size, err := command.WriteFile(c.Output, func(w io.Writer) error { return support.Write(w, name, files) })
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Wrote %s (%s). It has no credentials, variables or log lines of apps; its README.txt says what is in it.\n", c.Output, command.BytesText(size))
	if asked != nil {
		fmt.Fprintln(e.Out, e.Called("It has facts about the machine alone: "+asked.Error()))
	}
	return nil
}

// collect gathers the files. asked is why the daemon's part is missing.
func (c *SupportCmd) collect(e *command.Env, dir string) (files []support.File, asked error) {
	ctx, cancel := context.WithTimeout(e.Ctx, collectTime)
	files, asked = admin.SupportBundle.Do(ctx, c.Target(e), admin.None{}, nil)
	cancel()
	files = append(files, support.Machine(dir))
	has := func(name string) bool {
		return slices.ContainsFunc(files, func(f support.File) bool { return f.Name == name })
	}
	if !has("doctor.json") {
		files = append(files, support.Text("doctor.json", doctorOf(e.Ctx, dir)))
	}
	if !has("log.jsonl") && dir == datadir.Default {
		files = append(files, support.Text("journal.txt", journal(e.Ctx)))
	}
	if asked != nil {
		files = append(files, support.Text("daemon-error.txt", []byte(asked.Error()+"\n")))
	}
	return support.WithReadme(files, command.BuildVersion()), asked
}

// doctorOf is what doctor prints.
func doctorOf(ctx context.Context, dir string) []byte {
	self, err := os.Executable()
	if err != nil {
		return []byte(err.Error())
	}
	return printed(ctx, self, "doctor", "--json", "--data-dir", dir)
}

// journal is the last lines of the service's log.
func journal(ctx context.Context) []byte {
	return printed(ctx, "journalctl", "--unit", "cupola", "--lines", "1000", "--no-pager", "--output", "short-iso")
}

// printed is what a command prints, or why it does not.
func printed(ctx context.Context, command ...string) []byte {
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output() //nolint:gosec // cupola itself, and the journal
	if len(bytes.TrimSpace(out)) == 0 && err != nil {
		return []byte(strings.Join(command, " ") + ": " + err.Error() + "\n")
	}
	return out
}
