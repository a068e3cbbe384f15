package buildpack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// detectProcfile takes an app whose Procfile starts a program that is there: one of the app's own, or of the stack.
func detectProcfile(app string) bool {
	program := procfileProgram(app)
	return program != "" && hasProgram(app, program)
}

// finalizeProcfile names no command: the Procfile has them.
func finalizeProcfile(s *stage) (string, error) {
	s.info("The Procfile starts %s.", procfileProgram(s.app))
	return "", nil
}

// procfileProgram is the first word of the Procfile's web command, or of its first command if it has none.
func procfileProgram(app string) string {
	text, err := os.ReadFile(filepath.Join(app, "Procfile"))
	if err != nil || len(text) > fileLimit {
		return ""
	}
	var commands yaml.Node
	if yaml.Unmarshal(text, &commands) != nil || len(commands.Content) == 0 || commands.Content[0].Kind != yaml.MappingNode {
		return ""
	}
	pairs := commands.Content[0].Content
	command := pairs[1].Value
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i].Value == "web" {
			command = pairs[i+1].Value
		}
	}
	for word := range strings.FieldsSeq(command) {
		// What stands before a program: variables, and commands of the shell that run another.
		if name, _, assigned := strings.Cut(word, "="); assigned && !strings.Contains(name, "/") || slices.Contains([]string{"exec", "env", "nice", "nohup"}, word) {
			continue
		}
		return strings.Trim(strings.TrimRight(word, ";"), `"'`)
	}
	return ""
}

// shellWords are commands of the shell itself.
var shellWords = []string{"cd", "echo", "eval", "export", "for", "if", "set", "source", "test", "trap", "true", "while", ".", ":", "[", "[[", "(", "{"}

// hasProgram reports whether the app or the stack has a program.
func hasProgram(app, name string) bool {
	for _, home := range []string{"$HOME/", "${HOME}/", "/home/vcap/app/"} {
		if rest, ok := strings.CutPrefix(name, home); ok {
			return isProgram(filepath.Join(app, rest))
		}
	}
	switch {
	case filepath.IsAbs(name):
		return isProgram(name)
	case strings.Contains(name, "/"):
		return isProgram(filepath.Join(app, name))
	case slices.Contains(shellWords, name):
		return true
	}
	_, err := exec.LookPath(name)
	return err == nil
}
