package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"cupola/cmd/cupola/cli"
	"cupola/cmd/cupola/command"
)

type completionCmd struct {
	Shell string `arg:"" help:"The shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Run writes the script that lets a shell complete cupola's commands.
func (c *completionCmd) Run(e *command.Env) error { return writeCompletion(e.Out, c.Shell) }

func writeCompletion(w io.Writer, shell string) error {
	all, err := commands()
	if err != nil {
		return err
	}
	text := map[string]func([]*cli.Command) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[shell](all)
	_, err = io.WriteString(w, text)
	return err
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shellSteps are the cases of a shell's switch that lead from a place to the next.
func shellSteps(all []*cli.Command, format string) string {
	to := reach(all)
	var b strings.Builder
	for _, from := range slices.Sorted(maps.Keys(to)) {
		fmt.Fprintf(&b, format, from, to[from])
	}
	return b.String()
}

func bashCompletion(all []*cli.Command) string {
	var b strings.Builder
	for _, c := range all {
		var names []string
		for _, w := range nextWords(c) {
			names = append(names, w.name)
		}
		for _, f := range shownFlags(c) {
			names = append(names, "--"+f.Name)
		}
		fmt.Fprintf(&b, "  %s) words=%s ;;\n", shellQuote(place(c)), shellQuote(strings.Join(names, " ")))
	}
	return fmt.Sprintf(`# cupola's commands, for bash.
_cupola() {
  local at= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at/${COMP_WORDS[i]}" in
%s    esac
  done
  case "$at" in
%s  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _cupola cupola
`, shellSteps(all, "    %s) at=%s ;;\n"), b.String())
}

func zshCompletion(all []*cli.Command) string {
	described := func(name, help string) string {
		return shellQuote(strings.ReplaceAll(name, ":", `\:`) + ":" + help)
	}
	var b strings.Builder
	for _, c := range all {
		var names, flags []string
		for _, w := range nextWords(c) {
			names = append(names, described(w.name, w.help))
		}
		for _, f := range shownFlags(c) {
			flags = append(flags, described("--"+f.Name, f.Help))
		}
		fmt.Fprintf(&b, "  %s)\n    names=(%s)\n    flags=(%s) ;;\n", shellQuote(place(c)), strings.Join(names, " "), strings.Join(flags, " "))
	}
	return fmt.Sprintf(`#compdef cupola
# cupola's commands, for zsh.
_cupola() {
  local at= i
  local -a names flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at/${words[i]}" in
%s    esac
  done
  case "$at" in
%s  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o flag flags
  elif (( $#names )); then
    _describe command names
  else
    _files
  fi
}
_cupola "$@"
`, shellSteps(all, "    %s) at=%s ;;\n"), b.String())
}

func fishCompletion(all []*cli.Command) string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	for _, c := range all {
		at := quote("__cupola_at '" + place(c) + "'")
		for _, w := range nextWords(c) {
			fmt.Fprintf(&b, "complete -c cupola -f -n %s -a %s -d %s\n", at, quote(w.name), quote(w.help))
		}
		for _, f := range shownFlags(c) {
			value := ""
			if f.TakesValue() {
				value = " -r"
			}
			fmt.Fprintf(&b, "complete -c cupola -n %s -l %s%s -d %s\n", at, f.Name, value, quote(f.Help))
		}
	}
	return fmt.Sprintf(`# cupola's commands, for fish.
function __cupola_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        switch "$at/$word"
%s        end
    end
    test "$at" = "$argv[1]"
end
%s`, shellSteps(all, "            case %s\n                set at %s\n"), b.String())
}
