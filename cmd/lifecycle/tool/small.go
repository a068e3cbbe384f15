package tool

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func succeed(streams, []string) error { return nil }
func fail(streams, []string) error    { return status(1) }

// echo is for those that start it without a shell.
func echo(s streams, args []string) error {
	end := "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, end = args[1:], ""
	}
	_, err := fmt.Fprint(s.out, strings.Join(args, " ")+end)
	return err
}

func basename(s streams, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("missing operand")
	}
	base := path.Base(args[0])
	if len(args) > 1 && base != args[1] {
		base = strings.TrimSuffix(base, args[1])
	}
	fmt.Fprintln(s.out, base)
	return nil
}

func dirname(s streams, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("missing operand")
	}
	for _, a := range args {
		fmt.Fprintln(s.out, path.Dir(strings.TrimRight(a, "/")+strings.Repeat("/", 1-min(1, len(strings.Trim(a, "/"))))))
	}
	return nil
}

// date prints the time; formats of one letter each, as `date +%Y-%m-%d`.
func date(s streams, args []string) error {
	now := time.Now()
	format := "+%a %b %e %H:%M:%S %Z %Y"
	for _, a := range args {
		switch {
		case a == "-u":
			now = now.UTC()
		case strings.HasPrefix(a, "+"):
			format = a
		default:
			return fmt.Errorf("unknown argument %s", a)
		}
	}
	fmt.Fprintln(s.out, formatTime(now, format[1:]))
	return nil
}

func formatTime(t time.Time, format string) string {
	layouts := map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'b': "Jan", 'B': "January",
		'a': "Mon", 'A': "Monday", 'e': "_2", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05",
		'D': "01/02/06", 'R': "15:04", 'I': "03", 'p': "PM", 'j': "002",
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; {
		case c == 's':
			fmt.Fprint(&b, t.Unix())
		case c == 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case c == '%':
			b.WriteByte('%')
		case layouts[c] != "":
			b.WriteString(t.Format(layouts[c]))
		default:
			b.WriteString("%" + string(c))
		}
	}
	return b.String()
}

// env prints the environment, or changes it and becomes a command.
func env(s streams, args []string) error {
	vars := os.Environ()
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case args[0] == "-i" || args[0] == "-":
			vars = nil
		case args[0] == "-u" && len(args) > 1:
			args = args[1:]
			vars = slices.DeleteFunc(vars, func(kv string) bool { return strings.HasPrefix(kv, args[0]+"=") })
		case args[0] == "-S" && len(args) > 1:
			args = append([]string{""}, append(strings.Fields(args[1]), args[2:]...)...)
		default:
			return fmt.Errorf("unknown option %s", args[0])
		}
		args = args[1:]
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		name, _, _ := strings.Cut(args[0], "=")
		vars = slices.DeleteFunc(vars, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		vars = append(vars, args[0])
		args = args[1:]
	}
	if len(args) == 0 {
		for _, kv := range vars {
			fmt.Fprintln(s.out, kv)
		}
		return nil
	}
	file, err := exec.LookPath(args[0])
	if err != nil {
		fmt.Fprintf(s.err, "env: %s: No such file or directory\n", args[0])
		return status(127)
	}
	return syscall.Exec(file, args, vars)
}

func printenv(s streams, args []string) error {
	if len(args) == 0 {
		return env(s, nil)
	}
	for _, name := range args {
		value, ok := os.LookupEnv(name)
		if !ok {
			return status(1)
		}
		fmt.Fprintln(s.out, value)
	}
	return nil
}

func hostname(s streams, _ []string) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, name)
	return nil
}

func id(s streams, o options, _ []string) error {
	uid, gid := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	uname, gname := uid, gid
	if u, err := user.LookupId(uid); err == nil {
		uname = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		gname = g.Name
	}
	switch {
	case o.has('u') && o.has('n'):
		fmt.Fprintln(s.out, uname)
	case o.has('u'):
		fmt.Fprintln(s.out, uid)
	case o.has('g') && o.has('n'):
		fmt.Fprintln(s.out, gname)
	case o.has('g'):
		fmt.Fprintln(s.out, gid)
	default:
		fmt.Fprintf(s.out, "uid=%s(%s) gid=%s(%s)\n", uid, uname, gid, gname)
	}
	return nil
}

func whoami(s streams, _ []string) error { return id(s, options{'u': "", 'n': ""}, nil) }

// sleep takes numbers with the units s, m, h and d and waits for their sum.
func sleep(_ streams, args []string) error {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var total time.Duration
	for _, a := range args {
		unit := time.Second
		number := a
		if a != "" && units[a[len(a)-1]] != 0 {
			number, unit = a[:len(a)-1], units[a[len(a)-1]]
		}
		if number == "infinity" || number == "inf" {
			select {}
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("invalid time interval %q", a)
		}
		total += time.Duration(n * float64(unit))
	}
	if len(args) == 0 {
		return fmt.Errorf("missing operand")
	}
	<-time.After(total)
	return nil
}

func uname(s streams, o options, _ []string) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	var parts []string
	for _, f := range []struct {
		letter byte
		value  []byte
	}{{'s', u.Sysname[:]}, {'n', u.Nodename[:]}, {'r', u.Release[:]}, {'v', u.Version[:]}, {'m', u.Machine[:]}} {
		if o.has('a') || o.has(f.letter) || len(o) == 0 && f.letter == 's' {
			parts = append(parts, unix.ByteSliceToString(f.value))
		}
	}
	fmt.Fprintln(s.out, strings.Join(parts, " "))
	return nil
}

func which(s streams, args []string) error {
	var missing error
	for _, name := range args {
		file, err := exec.LookPath(name)
		if err != nil {
			missing = status(1)
			continue
		}
		fmt.Fprintln(s.out, file)
	}
	return missing
}
