package buildpack

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// installWheels installs the wheels of vendor/ into target where the stack
// has Python but, as a small Debian does, no pip. A wheel is an archive of
// what belongs on the module path, so nothing is built or resolved.
func (p pythonApp) installWheels(target string) error {
	wheels, err := filepath.Glob(filepath.Join(p.app, "vendor", "*.whl"))
	if err != nil {
		return err
	}
	if len(wheels) == 0 {
		return errors.New("the stack's python3 has no pip: run `pip download -r requirements.txt -d vendor --only-binary=:all:` and push again, or push with a stack that has pip")
	}
	if rest, _ := filepath.Glob(filepath.Join(p.app, "vendor", "*.tar.gz")); len(rest) > 0 {
		return fmt.Errorf("the stack's python3 has no pip to build %s: download wheels only (pip download --only-binary=:all:)", filepath.Base(rest[0]))
	}
	p.step("Installing the wheels of vendor/ (the stack has no pip)")
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, wheel := range wheels {
		p.info("%s", filepath.Base(wheel))
		if err := installWheel(root, wheel, p.python); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(wheel), err)
		}
	}
	return nil
}

func installWheel(root *os.Root, wheel, python string) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for _, f := range r.File {
		name, ok := wheelPath(f.Name)
		if !ok || strings.HasSuffix(f.Name, "/") {
			continue
		}
		if err := extractWheelFile(root, f, name); err != nil {
			return err
		}
		if path.Base(name) == "entry_points.txt" {
			if err := writeEntryPoints(root, f, python); err != nil {
				return err
			}
		}
	}
	return nil
}

// wheelPath is where a file of the archive goes: those of <name>.data have
// their place by kind, headers and data are left out.
func wheelPath(name string) (string, bool) {
	first, rest, _ := strings.Cut(name, "/")
	if !strings.HasSuffix(first, ".data") {
		return name, true
	}
	kind, rest, _ := strings.Cut(rest, "/")
	switch kind {
	case "purelib", "platlib":
		return rest, rest != ""
	case "scripts":
		return "bin/" + rest, rest != ""
	}
	return "", false
}

func extractWheelFile(root *os.Root, f *zip.File, name string) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(name, "bin/") || f.Mode()&0o111 != 0 {
		mode = 0o755
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// writeEntryPoints makes the programs that a wheel declares.
func writeEntryPoints(root *os.Root, f *zip.File, python string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	scripts, err := parseEntryPoints(io.LimitReader(in, fileLimit))
	if err != nil || len(scripts) == 0 {
		return err
	}
	if err := root.MkdirAll("bin", 0o755); err != nil {
		return err
	}
	for _, e := range scripts {
		text := fmt.Sprintf("#!%s\nimport sys\nfrom %s import %s\nsys.exit(%s())\n", python, e.module, e.top(), e.object)
		if err := root.WriteFile(filepath.Join("bin", e.name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// entryPoint is a console script: name = module:object.
type entryPoint struct {
	name, module, object string
}

func (e entryPoint) top() string {
	top, _, _ := strings.Cut(e.object, ".")
	return top
}

// parseEntryPoints reads the [console_scripts] section. Lines that are no
// identifiers are left out, as they would become code.
func parseEntryPoints(r io.Reader) ([]entryPoint, error) {
	var all []entryPoint
	section := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || section != "[console_scripts]" {
			continue
		}
		value, _, _ = strings.Cut(value, "[") // extras
		module, object, ok := strings.Cut(strings.TrimSpace(value), ":")
		e := entryPoint{strings.TrimSpace(name), strings.TrimSpace(module), strings.TrimSpace(object)}
		if ok && isDotted(e.module) && isDotted(e.object) && e.name != "" && !strings.ContainsAny(e.name, "/\\\x00") {
			all = append(all, e)
		}
	}
	return all, lines.Err()
}

// isDotted reports whether s is identifiers joined by dots.
func isDotted(s string) bool {
	for _, part := range strings.Split(s, ".") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return false
		}
	}
	return true
}
