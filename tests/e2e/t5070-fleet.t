# The fleet of examples/fleet: two machines, a failover in the middle, a laptop.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
timeout 150 sh -c '"$1" >fleet.out 2>fleet.err' sh "$top/examples/fleet/fleet"; code=$?
if [ $code = 3 ]; then
	skip 'the fleet' "$(sed -n 's/^fleet: //p' fleet.err | head -n 1)"
	finish
fi
if [ $code = 0 ]; then ok 'it runs to its end'; else note <fleet.out; note <fleet.err; not_ok "it ends with $code"; fi
says fleet.out 'copies +this server and h2' 'what h1 accepts h2 has, too'
says fleet.out 'copies +this server and h1' 'after the failover it is the other way round'
same 1 "$(sed -n '/asked again with the same id/,/mailroom where/p' fleet.out | grep -c 'alice  *sent while the server died')" 'the send that met the failover arrived once'
says fleet.out '"claimed":0,"done":1' 'the claim outlived it'
says fleet.out 'the mail to fleet is stored' 'mail of the laptop is stored while it is away'
says fleet.out 'fleet: 1 out, 0 in' 'and carried'
same 1 "$(grep -c 'erin  *from the tunnel' fleet.out)" 'once'
says fleet.out 'alice@fleet  *Re: from the tunnel' 'the answer comes back'
[ "$(ls -d "${TMPDIR:-/tmp}"/mailroom-fleet.* 2>/dev/null | wc -l)" = 0 ] && ok 'nothing is left behind' || not_ok 'folders are left behind'
finish
