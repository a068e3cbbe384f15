package stacks

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/command"

	rootstack "cupola/rootfs/stack"
	"cupola/server/admin"
	"cupola/server/admin/stack"
)

type inspectCmd struct {
	command.DaemonFlags
	stack.NameRequest
	JSON bool `help:"Print JSON." name:"json"`
}

// Run describes a stack or an image.
func (c *inspectCmd) Run(e *command.Env) error {
	if err := c.Known(); err != nil {
		return err
	}
	d, err := admin.StackInspect.Do(e.Ctx, c.Target(e), c.NameRequest, nil)
	if err != nil {
		return command.Interrupted(e, err)
	}
	if c.JSON {
		return command.WriteJSON(e.Out, d)
	}
	return writeDetail(e.Out, d)
}

// facts writes lines of a name and its values. It leaves out names without values.
type facts struct{ w io.Writer }

func (f facts) add(name string, values ...string) {
	if text := strings.Join(values, ", "); text != "" {
		fmt.Fprintf(f.w, "%s\t%s\n", name, command.Printable(text))
	}
}

func (f facts) lines(name string, values []string) {
	for _, v := range values {
		f.add(name, v)
		name = ""
	}
}

func writeDetail(w io.Writer, d stack.Detail) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	f := facts{t}
	if d.Stack != nil {
		f.stack(d.Stack)
	}
	if d.Image != nil {
		f.image(d.Image)
	}
	needed := d.Users
	if d.Image != nil && d.Stack == nil && len(d.Image.Stacks) > 0 {
		needed = append(needed, "stack "+strings.Join(d.Image.Stacks, ", "))
	}
	if d.Image != nil && d.Image.Mounted {
		needed = append(needed, "running containers")
	}
	if len(needed) == 0 {
		needed = []string{"nothing"}
	}
	f.lines("needed by", needed)
	f.lines("WARNING", d.Warnings)
	return t.Flush()
}

func (f facts) stack(s *stack.Info) {
	name := s.Name
	if s.Default {
		name += " (default)"
	}
	f.add("stack", name)
	f.add("CF_STACK", s.Compat)
	f.add("what", s.Description)
	if s.Kind != rootstack.KindDir {
		return
	}
	f.add("made", localTime(s.Created))
	f.add("size", command.BytesText(s.Bytes))
	f.add("platform", platformOf(s.Arch, s.Libc, s.Kernel)...)
	f.add("lock", s.Lock)
}

func (f facts) image(i *stack.ImageInfo) {
	f.lines("image", i.References)
	f.add("digest", i.Digest)
	f.add("size", fmt.Sprintf("%d layers, %s with what was moved", len(i.Layers), command.BytesText(i.DiskBytes)))
	f.add("platform", platformOf(i.Arch, i.Libc, i.Kernel)...)
	f.add("user", i.Config.User)
	f.add("entrypoint", quoted(i.Config.Entrypoint))
	f.add("command", quoted(i.Config.Cmd))
	f.add("directory", i.Config.WorkingDir)
	f.add("ports", i.Config.ExposedPorts...)
	f.lines("environment", i.Config.Env)
	f.lines("fallbacks", i.Fallbacks)
	f.add("pulled", localTime(i.Pulled))
	f.add("used", localTime(i.Used))
}

func platformOf(arch, libc, kernel string) (all []string) {
	if arch != "" {
		all = append(all, "linux/"+arch)
	}
	if libc != "" {
		all = append(all, libc)
	}
	if kernel != "" {
		all = append(all, "Linux "+kernel+" or newer")
	}
	return all
}

func quoted(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", words)
}

func localTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
