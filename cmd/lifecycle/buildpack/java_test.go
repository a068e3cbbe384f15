package buildpack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files; those of which the name ends in * are executable.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if n, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = n, 0o755
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What java-buildpack's bin/detect takes, but for bin and lib without jars.
func TestDetectJava(t *testing.T) {
	for want, all := range map[bool][][]string{
		true: {{"pom.xml"}, {"build.gradle.kts"}, {"BOOT-INF/lib/a.jar"}, {"WEB-INF/web.xml"}, {"a.war"}, {"a.jar"}, {"META-INF/MANIFEST.MF"}, {"com/example/A.class"},
			{"bin/start", "lib/a.jar"}, {"app-1.0/bin/start", "app-1.0/lib/a.jar"}},
		false: {{"bin/rails", "lib/tasks.rake"}, {"index.html"}, {"a/b/c/D.class"}, {"bin/start.bat", "lib/a.jar"}},
	} {
		for _, names := range all {
			files := map[string]string{}
			for _, n := range names {
				files[n] = ""
			}
			if got := detectJava(tree(t, files)); got != want {
				t.Errorf("%v: got %v; want %v", names, got, want)
			}
		}
	}
	if !detectJava(tree(t, map[string]string{"Procfile": "web: java -version"})) {
		t.Error("a Procfile with java is not taken")
	}
}

func TestChooseJVM(t *testing.T) {
	dir := tree(t, map[string]string{
		"jdk17/bin/java*": "", "jdk17/release": "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n", "jdk8/bin/java*": "", "jdk8/release": "JAVA_VERSION=\"1.8.0_422\"\n",
		"jdk25/bin/java*": "", "jdk25/release": "JAVA_VERSION=\"25\"\n", "broken/bin/java*": "", "none/release": "JAVA_VERSION=\"30\"\n",
	})
	if err := os.Symlink("jdk17", filepath.Join(dir, "default-java")); err != nil {
		t.Fatal(err)
	}
	all := findJVMs(filepath.Join(dir, "*"))
	var versions []string
	for _, j := range all {
		versions = append(versions, j.version)
	}
	if diff := cmp.Diff([]string{"25", "17.0.15", "1.8.0_422"}, versions); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for wanted, want := range map[string]string{
		"": "25", "17.+": "17.0.15", "17.*": "17.0.15", "17.x": "17.0.15", "17": "17.0.15", "17.0.15": "17.0.15", "17.0.15+6": "17.0.15", "17.0.+": "17.0.15", "25.+": "25",
		"1.8.0_+": "1.8.0_422", "8.+": "1.8.0_422", "8": "1.8.0_422", "1.8.+": "1.8.0_422", "+": "25", "17.0.14": "", "21.+": "", "1.7.0_+": "", "2": "",
	} {
		c := javaConfig{versionFrom: "X"}
		c.jre.JRE.Version = wanted
		got, err := chooseJVM(c, all)
		if got.version != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", wanted, got.version, err, want)
		}
		if wanted == "21.+" && !strings.Contains(err.Error(), "Push with -s debian13, which has 21.") {
			t.Errorf("%v does not name the stack", err)
		}
	}
}

func TestReadSetting(t *testing.T) {
	for text, want := range map[string]int{"{memory_calculator: {stack_threads: 5}}": 5, "[memory_calculator: {stack_threads: 6}]": 6, "[jre: {version: 17.+}, memory_calculator: {stack_threads: 7}]": 7, " ": 0, "{other: 1}": 0} {
		t.Setenv("JBP_CONFIG_OPEN_JDK_JRE", text)
		if c, err := readJavaConfig(); err != nil || c.jre.MemoryCalculator.StackThreads != want {
			t.Errorf("%s: got %d, %v; want %d", text, c.jre.MemoryCalculator.StackThreads, err, want)
		}
	}
	for _, text := range []string{"17", "[17]", "{jre: 17}", "{", "{memory_calculator: {stack_threads: many}}"} {
		t.Setenv("JBP_CONFIG_OPEN_JDK_JRE", text)
		if _, err := readJavaConfig(); err == nil || !strings.Contains(err.Error(), "the variable JBP_CONFIG_OPEN_JDK_JRE is not valid") {
			t.Errorf("%s: got %v; want an error", text, err)
		}
	}
	t.Setenv("JBP_CONFIG_OPEN_JDK_JRE", "")
	for text, want := range map[string]stringList{`{java_opts: "-Xmx1m -Da='b c'"}`: {"-Xmx1m", "-Da=b c"}, `{java_opts: ["-Da=b c"]}`: {"-Da=b c"}, `{java_opts: }`: nil} {
		t.Setenv("JBP_CONFIG_JAVA_OPTS", text)
		if c, err := readJavaConfig(); err != nil || cmp.Diff(want, c.options.JavaOpts) != "" {
			t.Errorf("%s: got %q, %v; want %q", text, c.options.JavaOpts, err, want)
		}
	}
}

func TestTomcatContext(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"unpacked", map[string]string{"WEB-INF/web.xml": ""}, `<Context docBase="${app.home}" reloadable="false"/>` + "\n"},
		{"war", map[string]string{"a&b.war": ""}, `<Context docBase="${app.home}/a&amp;b.war" reloadable="false"/>` + "\n"},
		{"its own", map[string]string{"WEB-INF/web.xml": "", "META-INF/context.xml": "<?xml version='1.0'?>\n<Context path='/x' docBase='/elsewhere' crossContext=\"true\">\n<Realm/></Context>"},
			"<?xml version='1.0'?>\n<Context docBase=\"${app.home}\" path='/x' crossContext=\"true\">\n<Realm/></Context>"},
	}
	for _, test := range tests {
		got, err := javaStage{stage: &stage{app: tree(t, test.files)}}.tomcatContext()
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v; want %q", test.name, got, err, test.want)
		}
	}
	for path, want := range map[string]string{"": "ROOT.xml", "/": "ROOT.xml", "/a/b": "a#b.xml"} {
		if got := contextFile(path); got != want {
			t.Errorf("%q: got %q; want %q", path, got, want)
		}
	}
}

func TestFindTomcat(t *testing.T) {
	t.Setenv("CF_STACK", "mine")
	dir := tree(t, map[string]string{"tomcat10/bin/catalina.sh*": "", "apache-tomcat-9.0.80/bin/catalina.sh*": "", "apache-tomcat-9.0.80/RELEASE-NOTES": "   Apache Tomcat Version 9.0.85\n", "tomcat8/readme": ""})
	patterns := []string{filepath.Join(dir, "tomcat*"), filepath.Join(dir, "apache-tomcat-*")}
	for wanted, want := range map[string]string{"": "10", "10.+": "10", "10.1.+": "10", "9.+": "9.0.85", "9.0.+": "9.0.85", "9.0.85": "9.0.85", "8.+": "", "9.1.+": ""} {
		var c tomcatConfig
		c.Tomcat.Version = wanted
		_, got, err := findTomcat(c, patterns)
		if got != want || want == "" && (err == nil || !strings.Contains(err.Error(), "stack 'mine' has [10 9.0.85]")) {
			t.Errorf("%q: got %q, %v; want %q", wanted, got, err, want)
		}
	}
	if _, _, err := findTomcat(tomcatConfig{}, nil); err == nil || !strings.Contains(err.Error(), "no Tomcat in stack 'mine'") || !strings.Contains(err.Error(), "--with java") {
		t.Errorf("got %v; want how to get it", err)
	}
}
