package buildpack

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/pattern"
)

// tomcatHomes are where systems have Tomcat, the newest first.
var tomcatHomes = []string{"/usr/share/tomcat11", "/usr/share/tomcat10", "/usr/share/tomcat9", "/opt/tomcat*", "/opt/apache-tomcat-*", "/usr/local/tomcat"}

// tomcatApp is a war, or the content of one. A war with a Main-Class runs by itself (java-buildpack: docs/container-tomcat.md).
func tomcatApp(j javaStage) (javaApp, bool, error) {
	wars, _ := filepath.Glob(filepath.Join(j.app, "*.war"))
	m, err := j.manifest()
	switch {
	case err != nil, !j.has("WEB-INF") && len(wars) == 0, j.has("WEB-INF") && m["Main-Class"] != "":
		return javaApp{}, false, err
	case !j.has("WEB-INF") && len(wars) > 1:
		return javaApp{}, false, errors.New("Multiple WAR files found in build directory; cannot determine which to deploy: push one of them, cf push -p FILE.war") //nolint:revive // Cloud Foundry's words
	}
	return javaApp{container: "Tomcat", command: "exec $CATALINA_HOME/bin/catalina.sh run", prepare: prepareTomcat}, true, nil
}

// findTomcat returns the stack's Tomcat and its major version.
func findTomcat(c tomcatConfig, patterns []string) (home, version string, err error) {
	var versions []string
	for _, pattern := range patterns {
		homes, _ := filepath.Glob(pattern)
		for _, home := range homes {
			if !isProgram(filepath.Join(home, "bin", "catalina.sh")) {
				continue
			}
			version := tomcatVersion(home)
			if wanted := c.Tomcat.Version; wanted == "" || strings.HasPrefix(version+".", strings.TrimRight(wanted, "+*x.")+".") || strings.HasPrefix(wanted, version+".") {
				return home, version, nil
			}
			versions = append(versions, version)
		}
	}
	if len(versions) > 0 {
		return "", "", fmt.Errorf("tomcat version resolution error for pattern %q of JBP_CONFIG_TOMCAT: %s has %v", c.Tomcat.Version, stackName(), versions)
	}
	return "", "", fmt.Errorf("%w, for its Tomcat; or push an executable war", lackOf("java").about("Tomcat"))
}

var tomcatNumber = pattern.Lazy(`Apache Tomcat Version ([0-9.]+)`)

// tomcatVersion reads a Tomcat's release notes, else the number in its directory's name.
func tomcatVersion(home string) string {
	if text, err := os.ReadFile(filepath.Join(home, "RELEASE-NOTES")); err == nil {
		if m := tomcatNumber().FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	base := filepath.Base(home)
	return strings.TrimLeft(base, "abcdefghijklmnopqrstuvwxyz-")
}

// prepareTomcat makes the instance of Tomcat that serves the app alone, next to the stack's programs.
func prepareTomcat(j javaStage) error {
	if j.config.tomcat.Tomcat.External {
		return errors.New("JBP_CONFIG_TOMCAT: external_configuration_enabled is not supported: it downloads a configuration; push with a Tomcat configured as you need it in an image, cf push --docker-image")
	}
	home, version, err := findTomcat(j.config.tomcat, tomcatHomes)
	if err != nil {
		return err
	}
	j.step("Using Tomcat %s of the stack", version)
	base := filepath.Join(j.deps, "tomcat")
	for _, dir := range []string{"conf/Catalina/localhost", "bin", "lib", "logs", "temp", "webapps", "work"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			return err
		}
	}
	context, err := j.tomcatContext()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"server.xml": tomcatServer, "context.xml": tomcatDefaults, "logging.properties": tomcatLogging, "web.xml": tomcatWeb,
		"Catalina/localhost/" + contextFile(j.config.tomcat.Tomcat.ContextPath): context,
	} {
		if err := os.WriteFile(filepath.Join(base, "conf", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	access := "false"
	if state := j.config.tomcat.AccessLogging.State; state == "enabled" || state == "true" {
		access = "true"
	}
	return j.profileScript("tomcat",
		`export CATALINA_HOME="`+home+`"`, `export CATALINA_BASE="`+j.atRuntime("tomcat")+`"`, `export CATALINA_TMPDIR="$TMPDIR"`,
		`export JAVA_OPTS="$JAVA_OPTS -Dhttp.port=$PORT -Dapp.home=$HOME -Daccess.logging.enabled=`+access+`"`)
}

// contextFile is the name of a context's description: its path, with # for slashes.
func contextFile(path string) string {
	if name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "#"); name != "" {
		return name + ".xml"
	}
	return "ROOT.xml"
}

var (
	contextTag = pattern.Lazy(`<Context\b`)
	docBase    = pattern.Lazy(`(<Context\b[^>]*?)\s+docBase\s*=\s*("[^"]*"|'[^']*')`)
)

// tomcatContext describes the app to Tomcat: its own META-INF/context.xml, with its directory or war as the base.
func (j javaStage) tomcatContext() (string, error) {
	base := "${app.home}"
	if !j.has("WEB-INF") {
		wars, _ := filepath.Glob(filepath.Join(j.app, "*.war"))
		var name strings.Builder
		if err := xml.EscapeText(&name, []byte(filepath.Base(wars[0]))); err != nil {
			return "", err
		}
		base += "/" + name.String()
	}
	root, err := os.OpenRoot(j.app)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	own, err := readOptional(root, "META-INF/context.xml")
	if err != nil || own == nil {
		return `<Context docBase="` + base + `" reloadable="false"/>` + "\n", err
	}
	text := docBase().ReplaceAllString(string(own), "$1")
	at := contextTag().FindStringIndex(text)
	if at == nil {
		return "", errors.New("META-INF/context.xml has no element Context")
	}
	return text[:at[1]] + ` docBase="` + base + `"` + text[at[1]:], nil
}

// The files of an instance. Tomcat listens on the container's port, believes the router's X-Forwarded-Proto and logs to standard output.
const (
	tomcatServer = `<?xml version="1.0" encoding="utf-8"?>
<Server port="-1">
  <Service name="Catalina">
    <Connector port="${http.port}" bindOnInit="false" connectionTimeout="20000" keepAliveTimeout="120000">
      <UpgradeProtocol className="org.apache.coyote.http2.Http2Protocol"/>
    </Connector>
    <Engine name="Catalina" defaultHost="localhost">
      <Valve className="org.apache.catalina.valves.RemoteIpValve" protocolHeader="x-forwarded-proto"/>
      <Valve className="org.apache.catalina.valves.AccessLogValve" enabled="${access.logging.enabled}" directory="/dev" prefix="stdout" suffix="" rotatable="false" buffered="false"
             pattern="[ACCESS] %h %l %t %D %F %B %S vcap_request_id:%{X-Vcap-Request-Id}i"/>
      <Host name="localhost" appBase="webapps" autoDeploy="false" failCtxIfServletStartFails="true">
        <Valve className="org.apache.catalina.valves.ErrorReportValve" showReport="false" showServerInfo="false"/>
      </Host>
    </Engine>
  </Service>
</Server>
`
	tomcatDefaults = `<?xml version="1.0" encoding="utf-8"?>
<Context>
  <Resources allowLinking="true"/>
</Context>
`
	tomcatLogging = `handlers = java.util.logging.ConsoleHandler
.handlers = java.util.logging.ConsoleHandler
java.util.logging.ConsoleHandler.level = FINE
java.util.logging.ConsoleHandler.formatter = org.apache.juli.OneLineFormatter
org.apache.catalina.core.ContainerBase.[Catalina].[localhost].level = INFO
`
	tomcatWeb = `<?xml version="1.0" encoding="utf-8"?>
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0">
  <servlet>
    <servlet-name>default</servlet-name>
    <servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class>
    <init-param><param-name>listings</param-name><param-value>false</param-value></init-param>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet>
    <servlet-name>jsp</servlet-name>
    <servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class>
    <init-param><param-name>xpoweredBy</param-name><param-value>false</param-value></init-param>
    <load-on-startup>3</load-on-startup>
  </servlet>
  <servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
  <servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>*.jsp</url-pattern><url-pattern>*.jspx</url-pattern></servlet-mapping>
  <session-config><session-timeout>30</session-timeout></session-config>
  <mime-mapping><extension>css</extension><mime-type>text/css</mime-type></mime-mapping>
  <mime-mapping><extension>csv</extension><mime-type>text/csv</mime-type></mime-mapping>
  <mime-mapping><extension>gif</extension><mime-type>image/gif</mime-type></mime-mapping>
  <mime-mapping><extension>htm</extension><mime-type>text/html</mime-type></mime-mapping>
  <mime-mapping><extension>html</extension><mime-type>text/html</mime-type></mime-mapping>
  <mime-mapping><extension>ico</extension><mime-type>image/x-icon</mime-type></mime-mapping>
  <mime-mapping><extension>jpeg</extension><mime-type>image/jpeg</mime-type></mime-mapping>
  <mime-mapping><extension>jpg</extension><mime-type>image/jpeg</mime-type></mime-mapping>
  <mime-mapping><extension>js</extension><mime-type>text/javascript</mime-type></mime-mapping>
  <mime-mapping><extension>json</extension><mime-type>application/json</mime-type></mime-mapping>
  <mime-mapping><extension>mjs</extension><mime-type>text/javascript</mime-type></mime-mapping>
  <mime-mapping><extension>pdf</extension><mime-type>application/pdf</mime-type></mime-mapping>
  <mime-mapping><extension>png</extension><mime-type>image/png</mime-type></mime-mapping>
  <mime-mapping><extension>svg</extension><mime-type>image/svg+xml</mime-type></mime-mapping>
  <mime-mapping><extension>ttf</extension><mime-type>font/ttf</mime-type></mime-mapping>
  <mime-mapping><extension>txt</extension><mime-type>text/plain</mime-type></mime-mapping>
  <mime-mapping><extension>wasm</extension><mime-type>application/wasm</mime-type></mime-mapping>
  <mime-mapping><extension>webp</extension><mime-type>image/webp</mime-type></mime-mapping>
  <mime-mapping><extension>woff</extension><mime-type>font/woff</mime-type></mime-mapping>
  <mime-mapping><extension>woff2</extension><mime-type>font/woff2</mime-type></mime-mapping>
  <mime-mapping><extension>xml</extension><mime-type>application/xml</mime-type></mime-mapping>
  <mime-mapping><extension>zip</extension><mime-type>application/zip</mime-type></mime-mapping>
  <welcome-file-list>
    <welcome-file>index.html</welcome-file><welcome-file>index.htm</welcome-file><welcome-file>index.jsp</welcome-file>
  </welcome-file-list>
</web-app>
`
)
