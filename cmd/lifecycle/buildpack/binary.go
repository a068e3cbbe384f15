package buildpack

import (
	"os"
	"path/filepath"
)

// detectBinary takes an app with just one executable in its top directory.
// Cloud Foundry's binary buildpack takes none unless named; ours is the last
// asked, so that a pushed program simply runs.
func detectBinary(app string) bool { return loneExecutable(app) != "" }

func finalizeBinary(s *stage) (string, error) {
	if s.has("Procfile") {
		return "", nil
	}
	name := loneExecutable(s.app)
	if name == "" {
		s.warn("no Procfile and not just one executable: name the start command with cf push -c or in the manifest")
		return "", nil
	}
	s.info("Start command is ./%s, the only executable.", name)
	return "./" + quoteShell(name), nil
}

// loneExecutable returns the name of the only executable file in dir, empty
// when there is none or more than one.
func loneExecutable(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	found := ""
	for _, e := range entries {
		if !e.Type().IsRegular() || !isExecutable(filepath.Join(dir, e.Name())) {
			continue
		}
		if found != "" {
			return ""
		}
		found = e.Name()
	}
	return found
}

// isExecutable reports whether a file has an executable bit and starts as an
// ELF program or a script does.
func isExecutable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o111 == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	n, _ := f.Read(magic[:])
	head := string(magic[:n])
	return head == "\x7fELF" || len(head) >= 2 && head[:2] == "#!"
}
