package buildpack

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// javaApp is what kind of Java app was pushed, in the words of Cloud Foundry's buildpack.
type javaApp struct {
	container string // "Spring Boot", "Tomcat", "Dist ZIP", "Java Main"
	command   string
	prepare   func(javaStage) error
}

// errNoJavaApp is the text of Cloud Foundry's buildpack.
var errNoJavaApp = errors.New("No suitable container found for this application") //nolint:revive // Cloud Foundry's words

// findApp looks for the kinds in the order of Cloud Foundry's buildpack (java-buildpack: RegisterStandardContainers). A main class that
// the user names comes first, and a war that can run by itself does.
func (j javaStage) findApp() (javaApp, error) {
	if err := j.mergeLayers(); err != nil {
		return javaApp{}, err
	}
	if j.config.main.Class != "" {
		return j.mainClass(j.config.main.Class), nil
	}
	for _, find := range []func(javaStage) (javaApp, bool, error){springBoot, tomcatApp, distributionApp, jarApp, classes} {
		if a, ok, err := find(j); err != nil || ok {
			return a, err
		}
	}
	return javaApp{}, fmt.Errorf("%w: %s", errNoJavaApp, j.guess())
}

// guess says what is missing from an app that looks like Java.
func (j javaStage) guess() string {
	for _, pattern := range []string{"target/*.jar", "target/*.war", "build/libs/*.jar", "build/libs/*.war", "build/distributions/*.zip"} {
		if found, _ := filepath.Glob(filepath.Join(j.app, pattern)); len(found) > 0 {
			built, _ := filepath.Rel(j.app, found[0])
			return "the app is a build's source. Push what the build made: cf push -p " + built
		}
	}
	switch jars, _ := filepath.Glob(filepath.Join(j.app, "*.jar")); {
	case len(jars) > 0:
		return filepath.Base(jars[0]) + " has no Main-Class in its META-INF/MANIFEST.MF. Build an executable jar, or name the class: cf set-env APP JBP_CONFIG_JAVA_MAIN '{java_main_class: com.example.Main}'"
	case j.has("pom.xml"):
		return "pom.xml is the source of a build. Build first (mvn package), then push the jar or war: cf push -p target/APP.jar"
	case j.has("build.gradle"), j.has("build.gradle.kts"):
		return "build.gradle is the source of a build. Build first (gradle build), then push the jar or war: cf push -p build/libs/APP.jar"
	}
	return "there is neither an executable jar, nor a war or WEB-INF, nor a bin and lib directory, nor a Main-Class in META-INF/MANIFEST.MF"
}

// springBoot is an unpacked jar with Spring Boot's launcher. The launcher is what Main-Class says, else that of the version.
func springBoot(j javaStage) (javaApp, bool, error) {
	m, err := j.manifest()
	if err != nil || !j.has("BOOT-INF") || !m.isSpringBoot() {
		return javaApp{}, false, err
	}
	launcher := m["Main-Class"]
	if launcher == "" {
		launcher = "org.springframework.boot.loader.launch.JarLauncher"
		if v := m["Spring-Boot-Version"]; strings.HasPrefix(v, "1.") || strings.HasPrefix(v, "2.") {
			launcher = "org.springframework.boot.loader.JarLauncher"
		}
	}
	return javaApp{container: "Spring Boot", command: j.execJava("-cp $HOME/. " + quoteShell(launcher)), prepare: springPort}, true, nil
}

// springPort makes the app listen on the container's port, whatever its own configuration says.
func springPort(j javaStage) error {
	return j.profileScript("spring", `export SERVER_PORT="$PORT"`)
}

// jarApp is an executable jar, or the content of one.
func jarApp(j javaStage) (javaApp, bool, error) {
	jars, _ := filepath.Glob(filepath.Join(j.app, "*.jar"))
	var executable []string
	var first javaManifest
	for _, jar := range jars {
		m, err := readJarManifest(jar)
		if err != nil {
			return javaApp{}, false, fmt.Errorf("%s is not a valid jar: %w", filepath.Base(jar), err)
		}
		if m["Main-Class"] == "" {
			continue
		}
		if len(executable) == 0 {
			first = m
		}
		executable = append(executable, filepath.Base(jar))
	}
	if len(executable) > 1 {
		j.warn("Several jars have a Main-Class: %s. The first is started; JBP_CONFIG_JAVA_MAIN names another class.", strings.Join(executable, ", "))
	}
	if len(executable) > 0 {
		a := javaApp{container: "Java Main", command: j.execJava(`-jar "$HOME"/` + quoteShell(executable[0]) + j.config.main.arguments()), prepare: nothing}
		if first.isSpringBoot() {
			a.container, a.prepare = "Spring Boot", springPort
		}
		return a, true, nil
	}
	m, err := j.manifest()
	if err != nil || m["Main-Class"] == "" {
		return javaApp{}, false, err
	}
	return j.mainClass(m["Main-Class"]), true, nil
}

// classes is a directory of compiled classes; which one is started, the variable JAVA_MAIN_CLASS says.
func classes(j javaStage) (javaApp, bool, error) {
	found, _ := filepath.Glob(filepath.Join(j.app, "*.class"))
	if len(found) == 0 {
		return javaApp{}, false, nil
	}
	class := os.Getenv("JAVA_MAIN_CLASS")
	if class == "" && len(found) == 1 {
		class = strings.TrimSuffix(filepath.Base(found[0]), ".class")
	}
	if class == "" {
		return javaApp{}, false, errors.New("no main class specified (set JAVA_MAIN_CLASS)")
	}
	return j.mainClass(class), true, nil
}

func (c mainConfig) arguments() string {
	if c.Arguments == "" {
		return ""
	}
	return " " + c.Arguments
}

// mainClass is an app that is started by the name of a class. The class path has the app's directory and its jars.
func (j javaStage) mainClass(class string) javaApp {
	path := []string{"$HOME"}
	for _, dir := range []string{"BOOT-INF/classes", "WEB-INF/classes"} {
		if j.has(dir) {
			path = append(path, "$HOME/"+dir)
		}
	}
	for _, dir := range []string{".", "lib", "BOOT-INF/lib", "WEB-INF/lib"} {
		if jars, _ := filepath.Glob(filepath.Join(j.app, dir, "*.jar")); len(jars) > 0 {
			path = append(path, filepath.Join("$HOME", dir)+"/*")
		}
	}
	a := javaApp{container: "Java Main", command: j.execJava(`-cp "` + strings.Join(path, ":") + `${CLASSPATH:+:$CLASSPATH}" ` + quoteShell(class) + j.config.main.arguments()), prepare: nothing}
	if strings.HasPrefix(class, "org.springframework.boot.loader.") {
		// Spring Boot's launcher finds the jars by itself, from where it lies.
		a.command, a.prepare = j.execJava("-cp $HOME/. "+quoteShell(class)+j.config.main.arguments()), springPort
	}
	return a
}

func nothing(javaStage) error { return nil }

// distributionApp is a distribution that a build made: a script in bin, jars in lib.
func distributionApp(j javaStage) (javaApp, bool, error) {
	script, err := distribution(j.app)
	if err != nil {
		return javaApp{}, false, nil //nolint:nilerr // it is not a distribution
	}
	return javaApp{container: "Dist ZIP", command: "exec $HOME/" + quoteShell(script), prepare: func(j javaStage) error {
		// Archives made elsewhere may lack the bit.
		return os.Chmod(filepath.Join(j.app, script), 0o755)
	}}, true, nil
}

// distribution returns the start script of the only distribution at the top of the app or one directory below.
func distribution(app string) (string, error) {
	var found []string
	dirs, _ := filepath.Glob(filepath.Join(app, "*"))
	for _, dir := range append([]string{app}, dirs...) {
		jars, _ := filepath.Glob(filepath.Join(dir, "lib", "*.jar"))
		scripts, _ := filepath.Glob(filepath.Join(dir, "bin", "*"))
		scripts = slices.DeleteFunc(scripts, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || !info.Mode().IsRegular() || filepath.Ext(path) == ".bat"
		})
		if len(jars) > 0 && len(scripts) > 0 {
			found = append(found, scripts[0])
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the app has %d distributions", len(found))
	}
	return filepath.Rel(app, found[0])
}

// mergeLayers joins the layers of a Spring Boot jar that was extracted to directories of their names
// (java -Djarmode=layertools -jar app.jar extract): the launcher needs them in one tree.
func (j javaStage) mergeLayers() error {
	if j.has("BOOT-INF") || !j.has("application/BOOT-INF") || !j.has("spring-boot-loader/org/springframework/boot/loader") {
		return nil
	}
	for _, layer := range []string{"dependencies", "spring-boot-loader", "snapshot-dependencies", "application"} {
		from := filepath.Join(j.app, layer)
		err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			to := filepath.Join(j.app, name)
			return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(path, to))
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.RemoveAll(from); err != nil {
			return err
		}
	}
	return nil
}

// javaManifest is the main section of a META-INF/MANIFEST.MF.
type javaManifest map[string]string

// isSpringBoot reports whether the jar has Spring Boot's launcher (java-buildpack: isSpringBootExplodedJar).
func (m javaManifest) isSpringBoot() bool {
	return m["Start-Class"] != "" || m["Spring-Boot-Version"] != "" || m["Spring-Boot-Classes"] != "" || m["Spring-Boot-Lib"] != ""
}

// parseManifest reads the main section: lines "Name: value", of which one that begins with a space continues the line before.
func parseManifest(text string) javaManifest {
	m := javaManifest{}
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if rest, ok := strings.CutPrefix(line, " "); ok {
			m[last] += rest
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		last = name
		m[name] = strings.TrimPrefix(value, " ")
	}
	return m
}

// manifest is that of the app's directory; empty where there is none.
func (j javaStage) manifest() (javaManifest, error) {
	root, err := os.OpenRoot(j.app)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	text, err := readOptional(root, "META-INF/MANIFEST.MF")
	return parseManifest(string(text)), err
}

// readJarManifest is the manifest in a jar; empty where there is none.
func readJarManifest(jar string) (javaManifest, error) {
	r, err := zip.OpenReader(jar)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Open("META-INF/MANIFEST.MF")
	if errors.Is(err, fs.ErrNotExist) {
		return javaManifest{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileLimit))
	return parseManifest(string(text)), err
}
