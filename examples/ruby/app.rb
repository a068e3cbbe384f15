# A web app on a gem that is vendored with it.
#
# It listens on $PORT, logs requests to stdout and trouble to stderr, and on SIGTERM finishes what it is answering.
require "bundler/setup"
require "erb"
require "json"
require "ladle"

class App
  SECRET = /VCAP_SERVICES|DATABASE_URL|PASSWORD|SECRET|TOKEN|KEY|CREDENTIAL/i.freeze
  PAGE = ERB.new(File.read(File.join(__dir__, "page.html")))
  STYLE = File.read(File.join(__dir__, "style.css"))

  attr_reader :name, :index

  def initialize
    @name = JSON.parse(ENV.fetch("VCAP_APPLICATION", "{}")).fetch("application_name", "hello-ruby")
    @index = ENV.fetch("CF_INSTANCE_INDEX", "0")
    @start = Time.now
    @visits = 0
    @mutex = Mutex.new
  end

  def call(request)
    answer = route(request)
    puts "#{request.verb} #{request.path} #{answer[0]}" unless request.path == "/health"
    answer
  end

  private

  def route(request)
    case request.path
    when "/" then home(request)
    when "/health" then text("ok\n")
    when "/env" then text(environment)
    when "/slow" then text(slow(request.query["ms"]))
    when "/crash" then crash
    when "/style.css" then [200, { "Content-Type" => "text/css; charset=utf-8" }, STYLE]
    else
      warn "no such page: #{request.path.inspect}"
      text("no such page\n", 404)
    end
  end

  # A page for browsers, one line for curl.
  def home(request)
    visits = @mutex.synchronize { @visits += 1 }
    unless request.headers.fetch("accept", "").include?("text/html")
      return text("hello from #{name}: instance #{index}, visit #{visits}\n")
    end

    facts = { name: name, index: index, visits: visits, runtime: "Ruby #{RUBY_VERSION}",
              uptime: "#{(Time.now - @start).to_i}s", memory: ENV.fetch("MEMORY_LIMIT", "none") }
    facts = facts.transform_values { |fact| ERB::Util.html_escape(fact) }
    [200, { "Content-Type" => "text/html; charset=utf-8", "Vary" => "Accept" }, PAGE.result_with_hash(facts)]
  end

  # The variables by name, one a line, with secrets hidden.
  def environment
    ENV.sort.map { |key, value| "#{key}=#{SECRET.match?(key) ? "(hidden)" : value}\n" }.join
  end

  def slow(asked)
    ms = asked.to_s.match?(/\A\d+\z/) && asked.to_i <= 30_000 ? asked.to_i : 2000
    puts "answering in #{ms} ms"
    sleep(ms / 1000.0)
    "slept #{ms} ms\n"
  end

  # Ends the process once the response is out.
  def crash
    text("crashing\n") << lambda do
      warn "#{name}: instance #{index} was asked to crash"
      exit!(1)
    end
  end

  def text(body, status = 200)
    [status, { "Content-Type" => "text/plain; charset=utf-8", "Vary" => "Accept" }, body]
  end
end

DRAIN_SECONDS = 9 # the platform kills ten seconds after SIGTERM

$stdout.sync = true
app = App.new
host = ENV.fetch("VCAP_APP_HOST", "0.0.0.0")
port = Integer(ENV.fetch("PORT", "8080"))
server = Ladle::Server.new(host, port) { |request| app.call(request) }

# A trap may not take locks, so it only wakes the main thread.
waker, alarm = IO.pipe
%w[TERM INT].each { |signal| trap(signal) { alarm.write_nonblock(".") } }

accepting = Thread.new { server.run }
puts "#{app.name}: instance #{app.index} listening on #{host}:#{port}"
waker.read(1)
puts "#{app.name}: instance #{app.index} stopping"
drained = server.stop(DRAIN_SECONDS)
accepting.join
abort "requests were still in flight" unless drained
