package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cupola/cmd/lifecycle/jvm"
)

// detectJava takes what Cloud Foundry's buildpack takes (java-buildpack: bin/detect), except that a distribution's lib directory must
// contain a jar: bin and lib alone are also what a Ruby app has.
func detectJava(app string) bool {
	for _, name := range []string{"pom.xml", "build.gradle", "build.gradle.kts", "BOOT-INF", "WEB-INF", "*.war", "*.jar", "META-INF/MANIFEST.MF", "application/BOOT-INF", "*.class", "*/*.class", "*/*/*.class"} {
		if found, _ := filepath.Glob(filepath.Join(app, name)); len(found) > 0 {
			return true
		}
	}
	if _, err := distribution(app); err == nil {
		return true
	}
	procfile, err := os.ReadFile(filepath.Join(app, "Procfile"))
	return err == nil && strings.Contains(string(procfile), "java")
}

// javaStage is the staging of an app for the JVM.
type javaStage struct {
	*stage
	config javaConfig
}

// readJava returns the staging with what is configured, and the JVM of the stack that fits.
func readJava(s *stage) (javaStage, javaVM, error) {
	config, err := readJavaConfig()
	if err != nil {
		return javaStage{}, javaVM{}, err
	}
	vm, err := chooseJVM(config, findJVMs(jvmPatterns...))
	return javaStage{stage: s, config: config}, vm, err
}

// supplyJava puts the stack's JVM into the search path, with the programs that a Java app starts by.
func supplyJava(s *stage) error {
	j, vm, err := readJava(s)
	if err != nil {
		return err
	}
	s.step("Using OpenJDK %s of the stack", vm.version)
	if err := s.supplyPrograms(jvm.Names()...); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(vm.home, "bin", "java"), filepath.Join(s.deps, "bin", "java")); err != nil {
		return err
	}
	if err := j.writeSettings(); err != nil {
		return err
	}
	return s.profileScript("java",
		`export JAVA_HOME="`+vm.home+`"`,
		`export JRE_HOME="$JAVA_HOME"`,
		`export PATH="$JAVA_HOME/bin:$PATH"`,
		`export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"`,
		`JAVA_OPTS="$("`+s.atRuntime("bin/"+jvm.Options)+`" "`+s.atRuntime(javaSettings)+`")"`,
		`export JAVA_OPTS`)
}

// javaSettings is the file of what the buildpack contributes to JAVA_OPTS.
const javaSettings = "java_opts.json"

func (j javaStage) writeSettings() error {
	settings := jvm.Settings{
		Before: []string{
			"-Djava.io.tmpdir=$TMPDIR",
			// A JVM without memory prints what fills its heap and ends: see jvm.Kill.
			"-XX:+StartAttachListener", "-XX:OnOutOfMemoryError=" + j.atRuntime("bin/"+jvm.Kill),
		},
		Configured: j.config.options.JavaOpts, FromEnvironment: j.config.options.fromEnvironment(),
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.deps, javaSettings), text, 0o644)
}

// finalizeJava finds out what kind of app it is, and returns the command that starts it, after the calculation of its memory.
func finalizeJava(s *stage) (string, error) {
	j, vm, err := readJava(s)
	if err != nil {
		return "", err
	}
	a, err := j.findApp()
	if err != nil {
		if s.has("Procfile") && errors.Is(err, errNoJavaApp) {
			return "", nil
		}
		return "", err
	}
	s.info("Detected container: %s", a.container)
	if err := a.prepare(j); err != nil {
		return "", err
	}
	memory := j.config.jre.MemoryCalculator
	classes := memory.ClassCount
	if classes == 0 {
		classes = countClasses(s.app, vm)
	}
	s.info("Loaded Classes: %d, Threads: %d, Headroom: %d%%", classes, memory.threads(), memory.Headroom)
	return j.calculation(classes) + " && " + a.command, nil
}

// calculation is the part of a start command that sets the sizes of the JVM's memory. If they do not fit into the container's limit,
// the app does not start, and its log says why.
func (j javaStage) calculation(classes int) string {
	c := j.config.jre.MemoryCalculator
	headRoom := ""
	if c.Headroom > 0 {
		headRoom = fmt.Sprintf(" --head-room=%d", c.Headroom)
	}
	return fmt.Sprintf(`CALCULATED_MEMORY=$(%s --total-memory=$MEMORY_LIMIT%s --loaded-class-count=%d --thread-count=%d --jvm-options="$JAVA_OPTS")`+
		` && echo JVM Memory Configuration: $CALCULATED_MEMORY && export JAVA_OPTS="$JAVA_OPTS $CALCULATED_MEMORY"`,
		j.atRuntime("bin/"+jvm.Calculator), headRoom, classes, c.threads())
}

// execJava is the command that executes the JVM with JAVA_OPTS and these arguments.
func (j javaStage) execJava(arguments string) string {
	return "exec " + j.atRuntime("bin/"+jvm.Exec) + ` "$JAVA_HOME/bin/java" ` + arguments
}
