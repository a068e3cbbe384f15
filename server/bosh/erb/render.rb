# Renders the templates of BOSH jobs. Standard input has all there is to render
# as JSON; for each template one line of JSON goes to standard output, as soon as
# it is rendered, so that the reader knows which one never ended.
require 'erb'
require 'json'
require 'ostruct'
require 'shellwords'
require 'uri'
require 'yaml'

autoload :Base64, 'base64'
autoload :CGI, 'cgi'
autoload :Digest, 'digest'
autoload :IPAddr, 'ipaddr'
autoload :OpenSSL, 'openssl'
autoload :Resolv, 'resolv'
autoload :SecureRandom, 'securerandom'
autoload :Set, 'set'
autoload :Time, 'time'
autoload :Zlib, 'zlib'
%i[Addrinfo Socket TCPSocket UDPSocket].each { |name| autoload name, 'socket' }

Encoding.default_external = Encoding::UTF_8
Encoding.default_internal = nil
ANSWERS = $stdout.dup.tap { |io| io.sync = true }
$stdout.reopen($stderr)

# As active_support/core_ext/object/blank, which BOSH loads for templates.
class Object
  def blank?
    respond_to?(:empty?) ? !!empty? : !self
  end

  def present?
    !blank?
  end

  def presence
    self if present?
  end
end

class String
  def blank?
    match?(/\A[[:space:]]*\z/)
  end
end

class Numeric
  def blank?
    false
  end
end

# The spec, in which methods(false) are the names of its fields, as templates
# expect: spec.networks.methods(false).
class Spec < OpenStruct
  def methods(regular = true)
    regular ? super : to_h.keys
  end
end

# What follows an if_p or if_link whose block has run.
class Done
  def else; end

  def else_if_p(*)
    self
  end

  def else_if_link(*)
    self
  end
end

# What follows one whose block has not run.
class Open
  def initialize(context)
    @context = context # where else_if_p looks: a template, a link or an instance
  end

  def else
    yield
  end

  def else_if_p(*names, &block)
    @context.if_p(*names, &block)
  end

  def else_if_link(name, &block)
    @context.if_link(name, &block)
  end
end

# What templates rescue, by the names that the director's renderer has for them.
class UnknownProperty < RuntimeError
  attr_reader :name

  def initialize(names)
    @name = Array(names)
    shown = @name.length > 1 ? @name.inspect : @name[0]
    super("Can't find property '#{shown}'")
  end
end

class UnknownLink < RuntimeError
  def initialize(name)
    super("Can't find link '#{name}'")
  end
end

# Properties by dotted names.
module Lookup
  def p(names, *default)
    Array(names).each do |name|
      value = find(name)
      return value unless value.nil?
    end
    return default[0] unless default.empty?
    raise UnknownProperty, names
  end

  def if_p(*names)
    values = names.map { |name| find(name) }
    return Open.new(self) if values.any?(&:nil?)
    yield(*values)
    Done.new
  end

  private

  def find(name)
    name.split('.').reduce(raw_properties) { |at, key| at.nil? ? nil : at[key] }
  end
end

# One that provides a link.
class LinkInstance
  include Lookup
  attr_reader :name, :id, :index, :az, :address, :bootstrap, :properties
  alias raw_properties properties

  def initialize(values, properties)
    @name, @id, @index, @az, @address, @bootstrap = values.values_at('name', 'id', 'index', 'az', 'address', 'bootstrap')
    @properties = properties
  end
end

# A link as the job that consumes it sees it.
class Link
  include Lookup
  attr_reader :instances, :properties
  alias raw_properties properties

  def initialize(values)
    @address = values['address']
    @properties = values['properties'] || {}
    @instances = values['instances'].map { |each| LinkInstance.new(each, @properties) }
  end

  # One name leads to all instances that are ready, whichever are asked for.
  def address(*)
    @address
  end
end

# What a template sees.
class Context
  include Lookup
  attr_reader :raw_properties, :index, :name

  def initialize(values)
    @raw_spec, @raw_properties, @raw_links = values
    @index = @raw_spec['index']
    @name = @raw_spec['name']
  end

  def spec
    @spec ||= open_struct(@raw_spec.merge('properties' => @raw_properties), Spec)
  end

  def properties
    @properties ||= open_struct(@raw_properties)
  end

  def link(name)
    values = @raw_links[name] or raise UnknownLink, name
    Link.new(values)
  end

  def if_link(name)
    return Open.new(self) unless @raw_links.key?(name)
    yield link(name)
    Done.new
  end

  def inspect
    "template of job #{@name}"
  end

  # A class of its own: what one template defines no other sees.
  def empty_binding
    instance_eval { binding }
  end

  private

  def open_struct(value, kind = OpenStruct)
    case value
    when Hash then kind.new(value.transform_values { |inner| open_struct(inner, kind) })
    when Array then value.map { |inner| open_struct(inner, kind) }
    else value
    end
  end
end

# The templates of a deployment.
class Renderer
  FILE = '(template)'.freeze

  def initialize(request)
    @templates = request['templates']
    @texts = request['texts'].map { |text| text.unpack1('m0').force_encoding('UTF-8') }
    @values = request['values'].map { |value| Marshal.dump(value) } # a template may change its own
    @contexts = request['contexts']
    @code = {}
  end

  def run
    @templates.each { |template| ANSWERS.puts(JSON.generate(answer(template))) }
  end

  private

  def answer(template)
    context = Context.new(own_values(@contexts[template['context']]))
    { text: [eval(code(template['text']), context.empty_binding, FILE, 0).b].pack('m0') }
  rescue Exception => e # a template may do anything, also exit
    { error: said(e), line: line(e) }
  end

  def own_values(context)
    [Marshal.load(Marshal.dump(context['spec'])), *context.values_at('properties', 'links').map { |at| Marshal.load(@values[at]) }]
  end

  def code(text)
    @code[text] ||= ERB.new(@texts[text], trim_mode: '-').src
  end

  def said(error)
    return 'needs more memory or a deeper stack than there is' if error.is_a?(NoMemoryError) || error.is_a?(SystemStackError)
    return 'calls exit' if error.is_a?(SystemExit) && error.message == 'exit' # abort has a message
    text = error.message.to_s.scrub.sub(/\A\(template\):\d+:\s*/, '').strip
    text = text.lines.first.to_s.strip unless error.is_a?(RuntimeError) || error.is_a?(SystemExit)
    text.empty? ? error.class.name : text[0, 2000]
  end

  def line(error)
    places = [error.is_a?(SyntaxError) ? error.message : nil, *error.backtrace]
    place = places.compact.find { |each| each.include?(FILE) }
    place ? place[/\(template\):(\d+)/, 1].to_i : 0
  end
end

Renderer.new(JSON.parse($stdin.read, max_nesting: false)).run
