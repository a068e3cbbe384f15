package jvm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"cupola/runtime/pattern"
)

// Settings are what the buildpack knows of JAVA_OPTS when it stages an app.
type Settings struct {
	// Before are options that come before all others.
	Before []string `json:"before"`
	// Configured are the options of JBP_CONFIG_JAVA_OPTS, each one argument of the JVM.
	Configured []string `json:"configured,omitempty"`
	// FromEnvironment adds JAVA_OPTS of the container's environment at the end.
	FromEnvironment bool `json:"from_environment"`
}

// optionsMain prints the app's JAVA_OPTS for a profile script. Its argument is the file of the Settings.
func optionsMain(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: java-options FILE")
		return 2
	}
	text, err := os.ReadFile(args[0])
	var s Settings
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "java-options:", err)
		return 1
	}
	fmt.Println(strings.Join(s.assemble(), " "))
	return 0
}

// assemble returns JAVA_OPTS in parts. Variables are expanded, commands are not executed.
func (s Settings) assemble() []string {
	out := append(expandAll(s.Before), fmt.Sprintf("-XX:ActiveProcessorCount=%d", runtime.NumCPU()))
	var user []string
	for _, option := range expandAll(s.Configured) {
		user = append(user, escape(option))
	}
	if s.FromEnvironment {
		// A manifest's block scalar may bring newlines.
		if env := strings.TrimSpace(strings.NewReplacer("\r", "", "\n", " ").Replace(os.Getenv("JAVA_OPTS"))); env != "" {
			user = append(user, expand(env))
		}
	}
	if store, err := trustStore(filepath.Join(os.Getenv("TMPDIR"), "truststore.jks")); err != nil {
		fmt.Fprintln(os.Stderr, "java-options: no trust store of the container's certificates:", err)
	} else if !strings.Contains(strings.Join(user, " "), "-Djavax.net.ssl.trustStore=") {
		out = append(out, "-Djavax.net.ssl.trustStore="+store)
	}
	out = append(out, user...)
	for _, option := range user {
		if strings.Contains(option, "$(") || strings.Contains(option, "`") {
			fmt.Fprintln(os.Stderr, "WARNING: JAVA_OPTS contains command substitution; it will NOT be executed and will be passed literally to the JVM.")
			break
		}
	}
	return out
}

func expandAll(options []string) []string {
	var out []string
	for _, o := range options {
		out = append(out, expand(o))
	}
	return out
}

// reference is a variable in an option, or a dollar that a backslash keeps from being one.
var reference = pattern.Lazy(`\\\$|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Za-z_][A-Za-z0-9_]*`)

// expand replaces $VAR and ${VAR}; \$ is a dollar (java-buildpack: docs/framework-java_opts.md).
func expand(option string) string {
	return reference().ReplaceAllStringFunc(option, func(r string) string {
		if r == `\$` {
			return "$"
		}
		return os.Getenv(strings.Trim(r, "${}"))
	})
}

// escape returns an option as one word of JAVA_OPTS.
func escape(option string) string {
	return special().ReplaceAllString(option, `\$0`)
}

// special are the characters that mean something in JAVA_OPTS, and to the shell of a start script.
var special = pattern.Lazy(`[\s"'\\` + "`" + `$&|;<>()*?#!]`)
