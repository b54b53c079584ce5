"""Scripts, each in a line: what they may return, what they find, and what goes wrong in them."""

from __future__ import annotations

BY_THEMSELVES = r"""
return {unpack({1,2,3}, 0, 2147483647)}
return {unpack({1,2,3}, -2, 2147483647)}
return {unpack({1,2,3}, -2147483648, -2)}
return {unpack({1,2,3}, -1, -2), unpack({1,2,3}, 1, 2), unpack({1,2,3})}
return {select('#', unpack({1,2,3}, -2147483648, -2147483646)), select('#', unpack({}, 1, 7000))}
return {select('#', unpack({1,2,3}, 1, 4294967298)), select('#', unpack({}, '1', '3')), select('#', unpack({}, 0/0, 2))}
return {pcall(unpack, {}, '-1', 2147483646)}
return {pcall(unpack, {}, 1, 100000)}
return (unpack(3))
return (unpack())
return (unpack({}, 'x'))
return (unpack({}, 1, {}))
return {select('#', pcall(function() end)), select('#', pcall(function() return nil, nil end))}
return {#string.rep('x', 2^31), #string.rep('x', 2^32 + 3), #string.rep('x', '2.9')}
return {load(function() return nil end, 'a\0b'), select(2, load(function() return '=' end, 7))}
return 1e15
return 1e300
return -1e300
return 0/0
return 1/0
return {1/0,0/0,1e19}
return {double=1/0}
return {double=-1/0}
return {double=0/0}
return {double=3.0}
return {double=1e300}
return {double=0.1}
return {double='x'}
return {map={1,2,3}}
return {map={a={b={c=1}}}}
return {set={a=true,b=true}}
return {big_number='123\r\n4'}
return {ok='a\r\nb'}
return {err='a\r\nb'}
return {err='a\r\n'}
return {err='nospace'}
return {err=''}
return {err=12}
return {ok=12}
return {ok='x\0y'}
return {err='x\0y z'}
return {err='ERR a', ok='b'}
return {verbatim_string={format='txt',string='abc'}}
return {verbatim_string={format='t',string='abc'}}
return {verbatim_string={format='markdown',string='abc'}}
return {verbatim_string={string='abc'}}
return {verbatim_string='x'}
return {1,2,nil,4}
return {nil}
return {a=1}
return {{}}
return function() end
return coroutine.create(function() end)
return print
return redis
return string
return {redis.call}
return true,false
return false
return {true,false}
return {1,{2,{3,{4}}}}
return "\0\1\255"
return 3.999999
return "3.5"+1
return redis.error_reply('x')
return redis.error_reply('-x')
return redis.error_reply('x y')
return redis.error_reply('-x y')
return redis.error_reply('')
return redis.error_reply('-')
return redis.error_reply(' x')
return redis.error_reply('x\r\n')
return redis.error_reply('x y\r\n')
return redis.error_reply('x \r\ny')
return redis.error_reply(1)
return redis.error_reply()
return redis.error_reply('a','b')
return redis.status_reply('x\r\ny')
return redis.status_reply(1)
return redis.status_reply()
return redis.status_reply('')
return redis.sha1hex()
return redis.sha1hex('a','b')
return redis.sha1hex(12)
return redis.sha1hex(12.5)
return redis.sha1hex(nil)
return redis.sha1hex({})
return redis.log()
return redis.log(1)
return redis.log('x','y')
return redis.log(9,'y')
return redis.log(-1,'y')
return redis.log(redis.LOG_DEBUG,'y')
return redis.log('1','y')
return {redis.LOG_DEBUG,redis.LOG_VERBOSE,redis.LOG_NOTICE,redis.LOG_WARNING}
return {redis.REPL_NONE,redis.REPL_AOF,redis.REPL_SLAVE,redis.REPL_REPLICA,redis.REPL_ALL}
return {redis.REDIS_VERSION,redis.REDIS_VERSION_NUM}
return redis.setresp()
return redis.setresp(4)
return redis.setresp('3')
return redis.setresp(2.7)
return redis.setresp(2,3)
return redis.setresp('x')
return redis.set_repl()
return redis.set_repl(9)
return redis.set_repl(-1)
return redis.set_repl('x')
return redis.set_repl(1)
return redis.set_repl(redis.REPL_ALL)
return redis.replicate_commands()
return redis.breakpoint()
return redis.debug('x')
return redis.acl_check_cmd('get','x')
return redis.acl_check_cmd('nope','x')
return redis.acl_check_cmd()
return redis.acl_check_cmd({})
return redis.nope
return redis.nope()
return redis.call()
return redis.pcall()
return redis.call(nil)
return redis.pcall(nil)
return redis.call('get',nil)
return redis.call('get',true)
return redis.call('get',{})
return redis.pcall('get',print)
return redis.call({})
return redis.call('')
return redis.call(' get','x')
return redis.call('GeT','x')
return redis.call(1)
return redis.call('config')
return redis.call('config','get')
return redis.call('config','nope')
return redis.call('config|get','x')
return redis.call('object','encoding','nokey')
return redis.call('object','nope')
return redis.call('select',1)
return redis.call('select',99)
redis.call('select',2) redis.call('set','in2','x') return redis.call('get','in2')
return redis.call('get','in2')
return redis.call('auth','x')
return redis.call('subscribe','x')
return redis.call('eval','return 1',0)
return redis.call('evalsha','x',0)
return redis.call('script','exists','x')
return redis.call('blpop','x',0)
return redis.call('blmove','x','y','left','left',0)
return redis.call('bzpopmin','x',0)
return redis.call('xread','block',0,'streams','x','$')
return redis.call('wait',0,0)
return redis.call('spop','nokey')
return redis.call('spop','nokey',3)
return redis.call('lpop','nokey')
return redis.call('lpop','nokey',2)
return redis.call('zscore','nokey','x')
return redis.call('mget','nokey','no2')
return redis.call('ping')
return redis.call('ping','x')
return redis.call('echo',1.5)
return redis.call('echo',1e17)
return redis.call('echo',123456789012345678)
return redis.call('echo',0.1)
return redis.call('echo',1/0)
return redis.call('echo',-1/0)
return redis.call('echo',0/0)
return redis.call('echo',-(0/0))
return redis.call('echo',1e16)
return redis.call('echo',3.0)
return type(redis.call('set','k','v'))
return redis.call('set','k','v').ok
return redis.call('set','k','v','get')
return redis.call('incr','k')
return redis.pcall('incr','k').err
return {redis.pcall('incr','k')}
return {1,redis.pcall('incr','k'),{redis.pcall('nope')}}
return pcall(redis.call,'incr','k')
return {pcall(redis.call,'incr','k')}
return {pcall(redis.pcall,'incr','k')}
return {pcall(error,{err='x'})}
return {pcall(error,{x='x'})}
return {pcall(error,'a')}
return {pcall(error)}
return {pcall(error,nil)}
return {pcall(function() error('x') end)}
return {pcall(function() error('x',0) end)}
return {pcall(function() error('x',2) end)}
return {pcall(function() local x = nil; x.y = 1 end)}
return {pcall()}
return {pcall(1)}
return pcall(pcall)
return {xpcall(function() error('x') end, function(e) return 'H'..e end)}
return {xpcall(function() redis.call('nope') end, function(e) return type(e) end)}
return {xpcall(function() redis.call('nope') end, function(e) return e.err end)}
return {xpcall()}
return {xpcall(1,2)}
error()
error(nil)
error(1)
error('x',0)
error('x',2)
error({err='x'})
error({err='x\r\ny'})
error(true)
assert(false)
assert(false,'msg')
assert(nil,{err='A b'})
assert(redis.pcall('incr','k'))
assert(1==1,'x') return 1
local x = nil + 1
local x = {} .. 'a'
return #5
return nil.x
local t = nil; t.x = 1
local t = {} ; t[nil]=1
return {} < {}
return 'a' < 1
foo()
foo.bar()
return foo
return _G.foo
return _G[1]
return _G[{}]
return _G[true]
foo = 1
_G.foo = 1
_G[1] = 1
redis = nil
redis.call = nil
redis.foo = 1
string.foo = 1
math.pi = 3
KEYS = {}
ARGV[1] = 'x' return ARGV[1]
KEYS[5] = 'x' return #KEYS
rawset(_G,'x',1)
rawset(redis,'x',1)
rawset({},1)
rawset()
rawset(1,2,3)
return rawget(_G,'x')
return rawget(_G,'redis') == redis
return rawget(1)
setmetatable(_G,{})
setmetatable(_G,nil)
setmetatable(redis,{})
setmetatable({},1)
setmetatable({})
setmetatable(1,{})
return getmetatable(redis)
return type(getmetatable(_G))
return getmetatable('').__index == string
getmetatable(_G).__index = 1
return type(getmetatable(_G).__index)
getmetatable('').foo = 1
return getmetatable(1)
return getmetatable()
return getmetatable(setmetatable({},{__metatable='x'}))
setmetatable(setmetatable({},{__metatable='x'}),{})
return type(_G)
return _G == _G._G
return type(getfenv())
return getfenv() == _G
return getfenv(0) == _G
return getfenv(1) == _G
return getfenv(print or redis.call) == _G
return getfenv(9)
return getfenv(-1)
return getfenv('x')
setfenv(1,{}) return 1
local f = function() return x end setfenv(f,{x=5}) return f()
setfenv(redis.call,{})
setfenv(9,{})
setfenv(1)
setfenv('x',{})
return loadstring('return 1')()
return loadstring('return redis == _G.redis')()
return loadstring('x = 1')()
return loadstring('bad bad')
return {loadstring('bad bad')}
return {loadstring('bad bad','name')}
return {loadstring('bad bad','@name')}
return {loadstring('bad bad','=name')}
return {loadstring(string.dump(function() end))}
return {loadstring('\27Lua')}
return loadstring()
return loadstring(1)
return {load(function() return nil end)}
return {load(1)}
local n=0 return load(function() n=n+1 if n==1 then return 'return ' elseif n==2 then return '7' end end)()
return {load(function() error('x') end)}
return {load(function() return {} end)}
return dofile('x')
return loadfile('x')
return require('x')
return module('x')
return io
return package
return debug
print('x')
return newproxy() ~= nil
return type(newproxy())
return collectgarbage('count') > 0
return collectgarbage('nope')
return collectgarbage()
return type(collectgarbage('step'))
return unpack({1,2,3})
return {unpack({1,2,3},2)}
return select('#',1,2,3)
return {select(-1,1,2,3)}
return select(0)
return select(1e9)
return next({})
return next(nil)
return next({},'x')
return pairs(nil)
return ipairs(nil)
local n=0 for k,v in pairs(redis) do n=n+1 end return n
local n={} for k,v in pairs(redis) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(string) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(math) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(table) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(coroutine) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(bit) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(cjson) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(cmsgpack) do n[#n+1]=k end table.sort(n) return n
local n={} for k,v in pairs(struct) do n[#n+1]=k end table.sort(n) return n
return _VERSION
return type(redis.call)
return tostring(redis.call):sub(1,9)
return tostring(nil)
return tostring()
return tonumber('0x10')
return tonumber('z',36)
return tonumber()
return string.rep('ab',3)
return string.rep('ab',-3)
return string.rep('ab')
return string.rep()
return string.rep({},1)
return ('x'):rep(3)
return string.format('%d',3.7)
return string.format('%5.2f|%s|%q',1.234,'x','a"b')
return string.format('%s')
return string.format('%y',1)
return string.char(300)
return string.byte('abc',1,-1)
return {string.byte('abc',1,-1)}
return {string.find('hello','l+')}
return {string.match('key=val','(%w+)=(%w+)')}
return {string.gsub('hello','l','L')}
return string.gsub('hello','(','L')
return string.find('a','[a')
return string.gsub('a','a','%9')
local r={} for w in string.gmatch('a b c','%a') do r[#r+1]=w end return r
return table.concat({1,2,3},',')
return table.concat({1,{},3},',')
return table.concat(nil)
table.insert(nil,1)
table.insert({},1,2,3)
table.insert(redis,1)
table.remove(redis)
table.sort(redis)
table.sort({3,1,'x'})
local t={3,1,2} table.sort(t) return t
local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t
return table.getn({1,2})
return table.maxn({1,2,[10]=1})
return math.floor(-1.5)
return math.random(0)
return math.random(3,1)
return math.random(1,2,3)
return math.random('x')
math.randomseed(7) return {math.random(1000),math.random(1000),tostring(math.random())}
math.randomseed(-7) return {math.random(1000),math.random(1000)}
math.randomseed(1e10) return {math.random(1000),math.random(1000)}
math.randomseed()
math.randomseed('x')
return math.huge
return tostring(math.huge)
return coroutine.running()
return coroutine.yield(1)
local f=coroutine.wrap(function(a) local b=coroutine.yield(a+1) return b*2 end) return {f(1),f(10)}
local f=coroutine.wrap(function() error('x') end) f()
local f=coroutine.wrap(function() redis.call('nope') end) f()
local c=coroutine.create(function() error('x') end) return {coroutine.resume(c)}
local c=coroutine.create(function() return redis.call('ping') end) local a,b=coroutine.resume(c) return b
return coroutine.create(1)
return coroutine.resume(1)
return coroutine.wrap(1)
return coroutine.status(coroutine.create(function() end))
local function f(n) if n==0 then return 'done' end return f(n-1) end return f(1000)
local function f() return f() + 1 end return f()
local a={} a.map={x=a} return #a
x=
return return
return 'unfinished
return [[x
for
goto x
return ~1
return 1 // 2
--[[ x
return "\400"
return 0x
local a <const> = 1
""".strip().split("\n")
"""They need no keys."""

OF_KEYS = r"""
redis.setresp(3) return redis.call('hgetall',KEYS[1])
redis.setresp(3) return redis.call('hgetall',KEYS[1]).map
redis.setresp(3) return redis.call('smembers','s')
redis.setresp(3) return redis.call('smembers','s').set
redis.setresp(3) return redis.call('zscore','z','m')
redis.setresp(3) return redis.call('zscore','z','m').double
redis.setresp(3) return redis.call('zrange','z',0,-1,'withscores')
return redis.call('zrange','z',0,-1,'withscores')
return redis.call('zscore','z','m')
redis.setresp(3) return redis.call('get','none')
redis.setresp(3) return redis.call('get','none')==nil
redis.setresp(3) return redis.call('blpop','none',0)
redis.setresp(3) return redis.call('lpop','none',1)
redis.setresp(3) return {true,false,nil,1}
redis.setresp(3) return true
redis.setresp(3) return false
redis.setresp(3) return redis.call('hincrbyfloat','h2','x',1.5)
redis.setresp(3) return redis.call('xread','streams','none','0')
redis.setresp(3) return redis.call('zmscore','z','m','x')
redis.setresp(3) return redis.call('zrank','z','nope')
redis.setresp(3) return redis.call('config','get','maxmemory')
return redis.call('config','get','maxmemory')
redis.setresp(3) return redis.call('object','freq','h')
redis.setresp(3) return redis.call('type','h')
redis.setresp(3) redis.call('nope')
redis.setresp(3) return redis.pcall('nope')
return redis.call('xrange','st','-','+')
return redis.call('xinfo','stream','st','full').ok
return redis.call('xreadgroup','group','g','c','streams','st','>')
return redis.call('xlen','st')
return redis.call('geopos','geo','p')
return redis.call('command','count') > 0
return redis.call('command','getkeys','get','x')
return redis.call('sort','s','by','nosort')
return redis.call('sort','s','by','nosort','alpha')
return redis.call('sort','s','by','nosort','get','#')
return redis.call('scan',0,'count',0)
return redis.call('publish','ch','x')
return redis.call('expire','h',100) + redis.call('ttl','h')
return redis.call('persist','h')
return redis.call('getrange','k1',0,-1)
return redis.call('bitfield','bf','set','u8',0,255,'get','u8',0)
return redis.call('bitfield','bf','overflow','fail','incrby','u2',0,5)
return redis.call('lpos','none','x')
return redis.call('randomkey') ~= nil
return redis.call('hello')
return redis.call('reset')
return redis.call('sync')
return redis.call('shutdown')
return redis.call('flushall')
return redis.call('dbsize')
return redis.call('acl','whoami')
return redis.call('move','h',1)
return redis.call('watch','x')
return redis.call('unwatch')
return redis.call('exec')
return redis.call('discard')
return redis.call('spublish','c','x')
return redis.call('pubsub','channels')
return redis.call('unsubscribe')
""".strip().split("\n")
"""What commands answer, as scripts have it: h is a hash, s a set, z a sorted set, st a stream."""
